r"""Control characters made visible: what a text or a file's name holds never steers a terminal.

>>> visible("red \x1b[31m")
'red ␛[31m'
"""

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_CODES = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}  # the second block has no pictures in Unicode
_BLANKS = {ord("\n"): " ", ord("\t"): " "}
_ON_ONE_LINE = _PICTURES | _CODES | _BLANKS
_VISIBLE = {code: shown for code, shown in _ON_ONE_LINE.items() if code not in _BLANKS}


def visible(text: str) -> str:
    """Return a text with pictures for control characters; newlines and tabs stay."""
    return text.translate(_VISIBLE)


def on_one_line(text: str) -> str:
    """Return a text with pictures for control characters, and blanks for newlines and tabs."""
    return text.translate(_ON_ONE_LINE)
