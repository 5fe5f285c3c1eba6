"""Pictures that lie in a run folder (boosting, calibration), made safe for the page.

SVG can carry scripts, styles and links. Only shapes and texts pass: every element and attribute that is not on the
list is left out, so that nothing in a picture can run or fetch.
"""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from whyscore.errors import DataError
from whyscore.report.model import Figure
from whyscore.text.files import text_of

FOLDER = "figures"
_SPACE = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {
    "svg", "g", "path", "rect", "line", "circle", "ellipse", "polyline", "polygon", "text", "tspan", "title", "desc",
    "defs", "clipPath", "linearGradient", "stop",
}  # fmt: skip
_ATTRIBUTES = {
    "viewBox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "d", "points", "dx",
    "dy", "transform", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
    "opacity",
    "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "text-anchor", "font-family", "font-size", "font-weight",
    "font-style", "clip-path", "id", "role", "aria-label", "aria-roledescription", "aria-hidden", "offset",
    "stop-color", "dominant-baseline", "preserveAspectRatio",
}  # fmt: skip
_LOCAL = re.compile(r"url\(\s*(?!#)", re.IGNORECASE)


def figures_in(folder: Path) -> tuple[Figure, ...]:
    """Return the SVG pictures in the folder `figures` of a run; a text file of the same name is the caption."""
    found = []
    for file in sorted((folder / FOLDER).glob("*.svg")):
        caption = file.with_suffix(".txt")
        told = text_of(caption).strip() if caption.exists() else ""
        found.append(Figure(file.stem.replace("_", " "), safe_svg(text_of(file), str(file)), told))
    return tuple(found)


def safe_svg(text: str, name: str = "picture") -> str:
    """Return a picture with nothing in it but shapes and texts.

    >>> safe_svg('<svg xmlns="http://www.w3.org/2000/svg"><script>x</script><rect width="1" onclick="x"/></svg>')
    '<svg xmlns="http://www.w3.org/2000/svg"><rect width="1" /></svg>'
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError("a picture with a document type is refused: it may declare entities", file=name)
    try:
        root = ET.fromstring(text)  # noqa: S314 - entities were refused above
    except ET.ParseError as error:
        raise DataError(f"not an SVG picture: {error}", file=name) from error
    if root.tag != f"{_SPACE}svg":
        raise DataError(f"not an SVG picture: its root is {root.tag!r}", file=name)
    ET.register_namespace("", _SPACE[1:-1])
    try:
        return ET.tostring(_cleaned(root), encoding="unicode")
    except RecursionError as error:
        raise DataError("not a picture that can be shown: nested too deep", file=name) from error


def _cleaned(element: ET.Element) -> ET.Element:
    kept = {key: value for key, value in element.attrib.items() if key in _ATTRIBUTES and not _LOCAL.search(value)}
    copy = ET.Element(element.tag, kept)
    copy.text, copy.tail = element.text, element.tail
    for child in element:
        if child.tag in {f"{_SPACE}{name}" for name in _ELEMENTS}:
            copy.append(_cleaned(child))
    return copy
