"""The server's pages and its JSON interface.

1. It reads run folders and answers requests. Uploaded files are evaluated in a temporary folder
   (`whyscore.web.uploads`).
2. What may be requested is in `whyscore.web.limits`, how requests and answers look in `whyscore.web.live`, the
   processes that answer in `whyscore.web.workers`, and limits on connections in `whyscore.web.connections`.
3. Only requests to an expected host are answered, so that a page elsewhere cannot reach a loopback server under another
   name. Pages carry a content policy: scripts of this server, no others.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar, cast

from jinja2 import Environment, FunctionLoader, StrictUndefined

from whyscore.errors import MissingExtra, UserError, WhyscoreError
from whyscore.report.build import report_of
from whyscore.report.page import read_static
from whyscore.runs.folder import RUN, read_run
from whyscore.scoring.store import Store
from whyscore.settings import takes
from whyscore.version import __version__
from whyscore.web import LOOPBACK, ServeSettings, live
from whyscore.web.connections import BODY, HEADERS, Connection, LimitedBodies, WithToken
from whyscore.web.limits import METRICS
from whyscore.web.live import (
    ComponentsAnswer,
    ExplainAnswer,
    ExplainQuestion,
    Problem,
    ScoreAnswer,
    ScoreQuestion,
)
from whyscore.web.uploads import ENTRIES, SUFFIXES, UploadAnswer, Uploads
from whyscore.web.workers import Busy, Gone, Queue, Work

try:
    from fastapi import Depends, FastAPI, Header, Query, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
    from starlette.exceptions import HTTPException
    from starlette.middleware.trustedhost import TrustedHostMiddleware
except ImportError as error:
    raise MissingExtra.of("whyscore serve", "web") from error


Question = TypeVar("Question", ScoreQuestion, ExplainQuestion)
Answer = TypeVar("Answer")

POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
PAGES = 8
"""Reports that are kept."""
_AGAIN = "1"
_PROBLEMS: dict[int | str, dict[str, object]] = {
    code: {"model": Problem, "description": description}
    for code, description in {400: "not understood", 413: "too large", 422: "refused", 503: "too busy"}.items()
}


def create(
    settings: ServeSettings | None = None, runs: Mapping[str, Path] | None = None, store: Store | None = None
) -> FastAPI:
    """Return the server; `runs` are folders by the name that they have in addresses."""
    settings = settings or ServeSettings()
    queue = Queue(settings, store)
    app = FastAPI(
        title="whyscore",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
        lifespan=lambda _: _serving(queue),
    )
    app.add_middleware(LimitedBodies)
    if settings.token:
        app.add_middleware(WithToken, token=settings.token)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, settings.host, *settings.allow_hosts])
    app.exception_handler(HTTPException)(_fail)
    app.exception_handler(RequestValidationError)(_misunderstood)
    app.exception_handler(WhyscoreError)(_refuse)
    shown = dict(runs or {})
    _pages(app, shown)
    _reports(app, shown, Reports(queue))
    _uploads(app, Uploads(shown, settings.memory))
    _interface(app, queue)
    return app


@asynccontextmanager
async def _serving(queue: Queue) -> AsyncIterator[None]:
    await queue.open()
    yield
    queue.close()


class Reports:
    """Report pages, made in worker processes one after the other; the latest are kept."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._turn = asyncio.Lock()
        self._pages: dict[object, str] = {}

    async def page(self, folders: tuple[Path, ...], gone: Callable[[], Awaitable[bool]]) -> str:
        """Return the report on runs; `gone` says whether the client has left."""
        state = folders, tuple(map(_change_times, folders))
        if state not in self._pages:
            async with self._turn:
                if state not in self._pages:  # it was made in the meantime
                    self._pages[state] = await self._queue.answer(live.answer_report, folders, gone, large=True)
                    while len(self._pages) > PAGES:
                        del self._pages[next(iter(self._pages))]
        return self._pages[state]


def _pages(app: FastAPI, runs: Mapping[str, Path]) -> None:
    @app.get("/", include_in_schema=False)
    def home() -> Response:
        shown = tuple(runs.items())  # an upload may add one meanwhile
        rows = sorted((_row(name, folder) for name, folder in shown), key=lambda row: row.created, reverse=True)
        limits = {"metrics": METRICS, "suffixes": SUFFIXES, "megabytes": BODY // 1_000_000, "entries": ENTRIES}
        return _page("home.html", {"runs": rows} | limits)

    @app.get("/try", include_in_schema=False)
    def live_page() -> Response:
        return _page("live.html")

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in _STATIC:
            return PlainTextResponse(f"no file named {name!r}", status_code=404)
        return Response(_file(name), media_type=_STATIC[name], headers=_HEADERS)


def _reports(app: FastAPI, runs: Mapping[str, Path], reports: Reports) -> None:
    async def show(names: Sequence[str], request: Request) -> Response:
        for name in names:
            if name not in runs:
                return _problem(404, "No such run", f"no run named {name!r}")
        folders = tuple(runs[name] for name in names)
        try:
            return HTMLResponse(await reports.page(folders, request.is_disconnected), headers=_HEADERS)
        except Busy:
            return _problem(503, "Too busy", "too many requests are waiting: try again")
        except Gone:
            return Response(status_code=499)
        except (WhyscoreError, OSError) as error:
            return _problem(422, "This report cannot be shown", _without_folder(str(error), folders))

    @app.get("/runs/{name}", include_in_schema=False)
    async def run(name: str, request: Request) -> Response:
        return await show([name], request)

    @app.get("/compare", include_in_schema=False)
    async def compare(run: Annotated[list[str], Query(max_length=50)], request: Request) -> Response:
        return await show(list(dict.fromkeys(run)), request)


class _Row(NamedTuple):
    """A run as the home page lists it."""

    name: str
    created: str = ""
    systems: tuple[str, ...] = ()
    headline: str = ""
    passed: bool | None = None
    """Whether its quality gates were passed; None where it has none."""
    problem: str = ""


def _row(name: str, folder: Path) -> _Row:
    try:
        return _read_row(name, folder, _change_times(folder))
    except (WhyscoreError, OSError) as error:
        return _Row(name, problem=_without_folder(str(error), (folder,)))


@lru_cache(maxsize=256)
def _read_row(name: str, folder: Path, _: tuple[int, ...]) -> _Row:
    run = read_run(folder)
    report = report_of(run, words=False)
    headline = report.headline or next(iter(report.verdict), "")
    passed = all(gate.passed for gate in report.gates) if report.gates else None
    return _Row(name, run.facts.created, run.dataset.systems, headline, passed)


def _without_folder(message: str, folders: Sequence[Path]) -> str:
    """Return a message without the paths of this machine."""
    for folder in folders:
        message = message.replace(str(folder), folder.name)
    return message


def _uploads(app: FastAPI, uploads: Uploads) -> None:
    def check_header(x_whyscore: Annotated[str, Header()] = "") -> None:
        # A page elsewhere cannot send a header of this name, nor make the browser send it.
        if x_whyscore != "upload":
            raise UserError("uploads must carry the header X-Whyscore: upload")

    @app.post("/api/uploads", dependencies=[Depends(check_header)])
    async def upload(
        request: Request,
        name: Annotated[str, Query(max_length=200)],
        metric: Annotated[list[str], Query(max_length=10)] = [],  # noqa: B006 - FastAPI copies it
        pair: Annotated[str, Query(max_length=25)] = "",
    ) -> UploadAnswer:
        """Evaluate the file in the body."""
        return uploads.start(name, await request.body(), metric, pair).answer()

    @app.get("/api/uploads/{upload}")
    async def progress(upload: str) -> UploadAnswer:
        """How far the evaluation is."""
        return uploads.find(upload).answer()

    @app.delete("/api/uploads/{upload}", dependencies=[Depends(check_header)])
    async def cancel(upload: str) -> UploadAnswer:
        """Cancel an evaluation."""
        return uploads.cancel(upload).answer()


def _interface(app: FastAPI, queue: Queue) -> None:
    async def ask(work: Work[Question, Answer], question: Question, request: Request) -> Answer | Response:
        large = live.is_large(question)
        try:
            return await queue.answer(work, question, request.is_disconnected, large=large)
        except Busy:
            return JSONResponse({"error": "too busy: try again"}, 503, headers={"Retry-After": _AGAIN})
        except Gone:
            return Response(status_code=499)

    @app.get("/api/components")
    def components() -> ComponentsAnswer:
        """What can be asked for."""
        return _components()

    @app.post("/api/score")
    async def score(question: ScoreQuestion, request: Request) -> ScoreAnswer:
        """One score per segment."""
        return await ask(live.answer_score, question, request)  # type: ignore[return-value]

    @app.post("/api/explain")
    async def explain(question: ExplainQuestion, request: Request) -> ExplainAnswer:
        """The words that made the score of a segment."""
        return await ask(live.answer_explain, question, request)  # type: ignore[return-value]


async def _misunderstood(_: Request, error: Exception) -> Response:
    """Say which part of a request was not understood."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    reasons = [
        ": ".join(filter(None, (".".join(map(str, place[1:])), reason.removeprefix("Value error, "))))
        for place, reason in ((problem["loc"], problem["msg"]) for problem in problems[:5])
    ]
    return JSONResponse({"error": "; ".join(reasons) or "not understood"}, 422)


async def _fail(_: Request, error: Exception) -> Response:
    """Say what the framework found wrong with a request in the words of all other problems."""
    problem = cast("HTTPException", error)
    return JSONResponse({"error": str(problem.detail)}, problem.status_code, headers=problem.headers)


async def _refuse(_: Request, error: Exception) -> Response:
    """Say why a question was refused; a failure of our own is a 500 without details of the machine."""
    if isinstance(error, UserError):
        return JSONResponse({"error": str(error)}, 422)
    return JSONResponse({"error": "this could not be scored"}, 422)


_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}
_STATIC = {
    "page.css": "text/css",
    "live.css": "text/css",
    "live.js": "text/javascript",
    "home.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def _page(template: str, facts: Mapping[str, object] | None = None, status: int = 200) -> Response:
    text = _templates().get_template(template).render({"version": __version__} | dict(facts or {}))
    return HTMLResponse(text, status, headers=_HEADERS | {"Content-Security-Policy": POLICY})


def _problem(status: int, title: str, message: str) -> Response:
    return _page("problem.html", {"title": title, "message": message}, status)


@cache
def _file(name: str) -> str:
    if name == "page.css":
        return read_static(("page.css",))
    return (resources.files("whyscore.web") / "static" / name).read_text("utf-8")


@cache
def _templates() -> Environment:
    folder = resources.files("whyscore.web") / "templates"
    loader = FunctionLoader(lambda name: (folder / name).read_text("utf-8"))
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)


@cache
def _components() -> ComponentsAnswer:
    return live.components()


def _change_times(folder: Path) -> tuple[int, ...]:
    return tuple(sorted(file.stat().st_mtime_ns for file in folder.iterdir() if file.suffix != ".html"))


@takes(ServeSettings)
def serve(
    runs: str | Path | Sequence[str | Path] = (),
    *,
    settings: ServeSettings,
    store: Store | None = None,
    quiet: bool = True,
    on_start: Callable[[], None] | None = None,
) -> None:
    """Serve runs, the page to try a sentence and the JSON API until interrupted.

    Args:
        runs: Run folders of `evaluate`.
        settings: Where and to whom; keyword arguments build them.
        store: Where scores are kept, for example `whyscore.store()`.
        quiet: No lines about requests on stderr.
        on_start: Called after all checks, before the server listens.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtra.of("whyscore serve", "web") from error

    app = create(settings, _name_folders([runs] if isinstance(runs, str | Path) else runs), store)
    if on_start is not None:
        on_start()
    level = "warning" if quiet else "info"
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_level=level,
        server_header=False,
        http=Connection,
        proxy_headers=False,  # a client could write what it likes into the log
        ws="none",
        h11_max_incomplete_event_size=HEADERS,
    )


def _name_folders(folders: Sequence[str | Path]) -> dict[str, Path]:
    """Return the folders by name; equal names get a number."""
    by_name: dict[str, Path] = {}
    for path in folders:
        folder = Path(path).resolve()
        if folder.is_file():
            page = (folder.parent / RUN).is_file()
            cure = f"whyscore serve {shlex.quote(str(Path(path).parent))}" if page else "open it in a browser instead"
            raise UserError(f"{path} is a file; serve takes run folders: {cure}")
        if not folder.is_dir():
            raise UserError(f"no run folder {str(path)!r}: make one with whyscore evaluate ... -o {path}")
        name, number = folder.name, 2
        while name in by_name:
            name, number = f"{folder.name}-{number}", number + 1
        by_name[name] = folder
    return by_name
