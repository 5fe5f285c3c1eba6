"""What an error quotes cannot break its line, nor command a terminal."""

from whyscore.errors import DataError, MissingExtra, UnknownName


def test_an_error_is_one_printable_line_whatever_it_quotes() -> None:
    told = str(DataError("the labels are a\nb\x1b[31m\u2028\ud800 and é 漢 🙂", file="x\ry.json", line=3))
    assert told == r"x\ry.json:3: the labels are a\nb\x1b[31m\u2028\ud800 and é 漢 🙂"
    assert told.isprintable()
    assert str(MissingExtra("a\nb")) == r"a\nb"
    assert str(UnknownName("a\tb")) == r"a\tb"
