"""Imports flow one way, folders stay readable, and `import whyscore` stays light."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, takewhile
from pathlib import Path

import pytest

import whyscore
from whyscore.experiments import PAPERS
from whyscore.registry import BUILT_IN

ROOT = Path(whyscore.__file__).parent

LAYERS = [
    {"version", "errors"},
    {"marking", "garbage"},
    {"settings"},
    {"types"},
    {"protocols"},
    {"text", "stats", "aggregate", "registry"},
    {"present"},
    {"models"},
    {"scoring", "taggers", "data"},
    {"explainers"},
    {"metrics"},
    {"analysis"},
    {"runs"},
    {"report"},
    {"web"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
STRING = re.compile(r"whyscore(\.\w+)+(:\w+)?")
FREE = {"testing", "experiments", "__init__", "__main__"}


def room(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def is_module(name: str) -> bool:
    """Whether a dotted name is a module of whyscore."""
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imported(path: Path) -> list[tuple[int, str]]:
    """Every module of whyscore that a module names: in import statements, or as a text from which it is imported."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" if node.module == "whyscore" else node.module or "" for a in node.names]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STRING.fullmatch(node.value):
            names = [name for name in [node.value.partition(":")[0]] if is_module(name)]
        found += [(node.lineno, name) for name in names if name.startswith("whyscore.")]
    return found


def upstream_imports(path: Path) -> list[str]:
    """Every import that goes to the right, or to a sibling room."""
    own = room(path)
    return [
        f"{path}:{line}: {own} imports {name}"
        for line, name in imported(path)
        if (other := name.split(".")[1]) != own and LEVEL.get(other, len(LAYERS)) >= LEVEL[own]
    ]


# Tables of names as texts, whose purpose is to point anywhere: they have tests of their own below.
TABLES = {"registry.py", "cli/commands/experiment.py"}
MODULES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if room(path) not in FREE and path.relative_to(ROOT).as_posix() not in TABLES
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    assert upstream_imports(path) == []


# Where the components of each kind live.
HOMES = {
    "metric": {"metrics"},
    "explainer": {"explainers"},
    "tagger": {"taggers"},
    "executor": {"scoring"},
    "splitter": {"text", "models"},
    "masker": {"text", "models"},
    "aggregator": {"aggregate"},
    "encoder": {"models"},
}


@pytest.mark.parametrize("kind", BUILT_IN)
def test_built_in_names_stand_for_classes_in_the_package_of_their_kind(kind: str) -> None:
    for name, target in BUILT_IN[kind].items():
        module, _, attribute = target.partition(":")
        path = ROOT.parent.joinpath(*module.split(".")).with_suffix(".py")
        if not path.is_file():
            path = path.with_suffix("") / "__init__.py"
        assert path.is_file(), (kind, name)
        assert module.split(".")[1] in HOMES.get(kind, {module.split(".")[1]}), (kind, name)
        assert attribute in defined(path), (kind, name)


def defined(path: Path) -> set[str]:
    """The names that a module defines or imports at its top."""
    tree = ast.parse(path.read_text("utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    found |= {a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    return found | {
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if hasattr(t, "id")
    }


def test_experiments_offer_a_table_of_commands_and_nothing_imports_them() -> None:
    for module in PAPERS:
        assert importlib.import_module(f"whyscore.experiments.{module}").EXPERIMENTS
    for path in ROOT.rglob("*.py"):
        if room(path) not in FREE and path.relative_to(ROOT).as_posix() not in TABLES:
            assert [name for _, name in imported(path) if name.split(".")[1] in ("experiments", "testing")] == [], path


# What experiments are built on: the public names, the foundations, and of the rest these doors alone. An analysis that
# is a package offers its parts in its `__all__`.
FOUNDATIONS = {"errors", "marking", "settings", "types", "protocols", "registry", "aggregate", "stats", "text", "data"}
DOORS = {
    "analysis": {
        "boost", "calibrate", "categories", "common", "convert", "decompose", "explain", "metaeval", "score", "train",
    },
    "cli": {"options", "output", "setup"},
    "explainers": {"inside", "masks.erasure"},
    "metrics": {
        "boosted", "estimators.qe", "judge", "lexical.edits", "matching.bertscore", "matching.weights", "needs",
    },
    "models": {
        "encoders.embedded", "encoders.stacks", "encoders.transformer", "maps", "pairs", "rows", "surprisal",
    },
    "report": {"figures", "figures.decompose"},
    "scoring": {"answers", "rows", "stack", "store"},
}  # fmt: skip
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_experiments_stand_on_what_others_may_use_too(path: Path) -> None:
    for line, name in imported(path):
        first, _, inside = name.removeprefix("whyscore.").partition(".")
        public = first in whyscore.__all__ and not inside
        allowed = public or first in FOUNDATIONS | {"experiments"} or inside in DOORS.get(first, ())
        assert allowed, f"{path}:{line} imports {name}: offer what it needs in the package's __all__"
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("whyscore.analysis."):
            offered = getattr(importlib.import_module(str(node.module)), "__all__", None)
            assert offered is None or {alias.name for alias in node.names} <= set(offered), node.module


def test_every_room_has_a_layer() -> None:
    rooms = {room(path) for path in ROOT.rglob("*.py")} - FREE
    assert rooms <= set(LEVEL)


# A folder is a subject, a file is a part of it: at most 20 modules, no three with one prefix, no twins.
MOST_MODULES, FAMILY = 20, 3
ENDINGS = {"", "s", "e", "es", "ed", "d", "ing", "er", "ers", "or", "ion", "ions", "ation", "ison", "ment", "able"}


def twins(one: str, other: str) -> bool:
    """Whether two names are forms of one word.

    >>> twins("boost", "boosted"), twins("compare", "comparison"), twins("word_ranks", "words_ranked")
    (True, True, True)
    >>> twins("words", "workers"), twins("report", "reporting_lines")
    (False, False)
    """
    first, second = one.split("_"), other.split("_")
    return len(first) == len(second) and all(map(_alike, first, second))


def _alike(one: str, other: str) -> bool:
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (stem > FAMILY and {one[stem:], other[stem:]} <= ENDINGS)


def offenders() -> Iterator[str]:
    """What is wrong with the folders of whyscore."""
    for folder in sorted({path.parent for path in ROOT.rglob("*.py")}):
        modules = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))
        packages = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
        place = folder.relative_to(ROOT).as_posix()
        if len(modules) > MOST_MODULES:
            yield f"{place}: {len(modules)} modules"
        for prefix, number in Counter(name.split("_")[0] for name in modules).items():
            if number >= FAMILY:
                yield f"{place}: {number} modules {prefix}_*"
        for one, other in combinations(modules + packages, 2):
            if twins(one, other):
                yield f"{place}: {one} and {other}"


def test_a_folder_is_a_subject_and_a_file_is_a_part_of_it() -> None:
    assert list(offenders()) == []


HEAVY = ("torch", "transformers", "spacy", "altair", "pandas", "lime", "shap")
MAIN = "from whyscore.cli.main import main; main"


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        ("import whyscore", ("scipy", "sacrebleu", "numpy")),
        (f"{MAIN}(['--help'])", ("scipy", "sacrebleu", "numpy")),
        (f"{MAIN}(['score', '--help'])", ("scipy", "sacrebleu", "urllib.request")),
        (f"{MAIN}(['experiment', '--help'])", ("scipy.stats", "scipy.optimize", "urllib.request")),
    ],
)
def test_the_door_loads_nothing_heavy(command: str, heavy: tuple[str, ...]) -> None:
    heavy += HEAVY
    check = f"{command}; import sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_public_name_can_be_had() -> None:
    assert whyscore.__all__ == sorted(whyscore.__all__)
    for name in whyscore.__all__:
        assert getattr(whyscore, name) is not None
    assert sorted(dir(whyscore)) == sorted(whyscore.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'scroe'"):
        whyscore.scroe  # type: ignore[attr-defined]  # noqa: B018


def test_an_option_is_described_once() -> None:
    """Two settings classes with an option of one name and one help text share its declaration (`again`, a mixin)."""
    declared: dict[tuple[str, str], list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        classes = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef))
        for kind in classes:
            for field in kind.body:
                call = field.value if isinstance(field, ast.AnnAssign) else None
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "option" and len(call.args) > 1:
                    name = field.target.id  # type: ignore[union-attr]
                    declared.setdefault((name, ast.unparse(call.args[1])), []).append(f"{path.name}: {kind.name}")
    assert len(declared) > 100
    assert {key: places for key, places in declared.items() if len(places) > 1} == {}
