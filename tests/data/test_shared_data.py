"""Real files, with the oddities they have."""

from pathlib import Path

from whyscore.data.checks import findings
from whyscore.data.files import read_lines
from whyscore.data.formats.text import read_texts
from whyscore.data.reading import read


def check_line_ends(paths: list[Path], count: int, note: str) -> None:
    for path in paths:
        lines = read_lines(path)
        assert len(lines.texts) == count
        assert not any("\r" in text for text in lines.texts)
        assert [finding.message.startswith(note) for finding in lines.findings] == [True]


def test_line_ends_of_all_kinds_are_read_with_a_note(shipped: Path, tmp_path: Path) -> None:
    handed_in = sorted((shipped / "eval4nlp2023_summarization").glob("*.seg.scores"))
    assert len(handed_in) == 2
    check_line_ends(handed_in, 1280, "1280 of 1280 lines end in CR LF")
    path = tmp_path / "open_end"
    path.write_text((shipped / "eval4nlp2021" / "dev" / "et-en" / "dev.mt").read_text("utf-8").rstrip("\n"), "utf-8")
    check_line_ends([path], 1000, "the last line does not end in a newline")


def test_quoting_of_a_real_tsv_file_is_found(shared: Path) -> None:
    path = shared / "eval4nlp2023_summarization" / "train_summarization.tsv"
    dataset = read(path)
    assert (len(dataset), len(dataset.systems), len(dataset.ids)) == (320, 16, 97)
    scores = dataset.human("Score")
    assert (round(float(scores.min()), 4), scores.max()) == (1.3333, 5.0)
    texts = [text for segment in dataset.segments for text in (segment.hypothesis, segment.source or "")]
    assert sum('"' in segment.hypothesis + (segment.source or "") for segment in dataset.segments) == 29
    assert not any((text.startswith('"') and text.endswith('"')) or '""' in text for text in texts)
    assert sum(text.count("\u00a0") for text in texts) == 432
    assert [finding.message for finding in dataset.findings] == [
        "321 of 321 lines end in CR LF; the CR was removed",
        "quotation marks were read as CSV quoting",
    ]
    told = [str(finding) for finding in findings(dataset)]
    expected = "no-break space (U+00A0) in 148 of 320 sources, 432 in all: lines 3, 6, 8, 9, 11 and 143 more"
    assert f"{path}:3: {expected}" in told


def test_soft_hyphens_are_reported_with_their_lines(shipped: Path, tmp_path: Path) -> None:
    folder = shipped / "eval4nlp2021" / "dev" / "et-en"
    lines = (folder / "dev.src").read_text("utf-8").split("\n")[:-1]
    for number in (252, 487):
        lines[number - 1] = f"{lines[number - 1][:3]}\u00ad{lines[number - 1][3:]}"
    source = tmp_path / "src"
    source.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    dataset = read_texts([folder / "dev.mt"], source=source)
    expected = f"{source}:252: soft hyphen (U+00AD) in 2 of 1000 sources: lines 252, 487"
    assert expected in [str(finding) for finding in findings(dataset)]
    with_hyphen = [k for k, segment in enumerate(dataset.segments, start=1) if "\u00ad" in (segment.source or "")]
    assert with_hyphen == [252, 487]


def test_json_lines_of_several_pairs_keep_the_pair_for_grouping(shipped: Path) -> None:
    dataset = read(shipped / "wmt17" / "wmt17_to_en.jsonl", human="HUMAN_score")
    assert len(dataset) == 1680
    assert dataset.languages is None
    assert {entry.extra["LP"] for entry in dataset.entries} == {"cs-en", "de-en", "tr-en"}
    assert len(dataset.human("HUMAN_score")) == 1680
