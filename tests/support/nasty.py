"""A thousand texts that break programs: for everything that reads, cuts, scores, marks or prints text.

`NASTY` is the same on every machine: the hand-made ones first, then seeded mixtures of them.
"""

import sys
import unicodedata
from collections.abc import Iterator
from itertools import chain, islice

from whyscore.text.randomness import generator

COUNT = 1000
_SHORT = 100

_BLANK = ("", " ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", " \u2003 ", "\u2028", "\u2029", "\x85", "\x0b", "\x0c")
_CONTROL = ("\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\x07bell", "a\rb", "a\x1fb", "\x7f", "\u200e\u200f", "a\u00adb")
_DIRECTION = (
    "\u202eabc\u202c",
    "\u2066x\u2069 y",
    "שלום עולם",
    "مرحبا بالعالم 123",
    "abc \u202b שלום 45 \u202c def",
    "\u061c",
)
_COMBINING = ("e\u0301", "é", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢", "\u0301", "ﬁne", "ſ", "İstanbul", "ǅ", "ß ẞ SS", "\u1100\u1161\u11a8", "각")
_EMOJI = ("👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "☺️", "1️⃣", "🏳️‍🌈 flag", "😀" * 50, "\U0001f1e6", "\u200d", "a\ufe0f")
_SCRIPTS = (
    "我有一只猫。",
    "私は猫を飼っています",
    "ฉันมีแมว",
    "고양이가 있어요",
    "मेरे पास एक बिल्ली है",
    "ខ្ញុំមានឆ្មា",
    "𒀀𒁀",
    "𝒞𝒶𝓉",
    "Ｆｕｌｌ",
)
_ODD = ("\ud800", "a\udfffb", "\ue000\ue001", "\U0010ffff", "\ufffd\ufffe", "\U000e0041", "\uffff")
_MARKUP = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp;amp;",
    "<!--",
    "]]>",
    "<![CDATA[x]]>",
    "{{ 7*7 }}",
    "{% raw %}",
    "${jndi:ldap://x}",
    "javascript:alert(1)",
    "<v>marked</v>",
    "<v>",
    "<EOS>",
    "<unk> [MASK] </s> <pad>",
    "@@ ▁ Ġ ##ing",
    "UNKWORDZ",
)
_QUOTING = (
    '"',
    "'",
    '""',
    '"a',
    "a\"b'c`d",
    "\\",
    "\\n",
    "a\\",
    "%s %d %n",
    "{0} {x!r}",
    "$(rm -rf /)",
    "`id`",
    "; DROP TABLE scores;--",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "a,b;c\td|e",
    "~/x ../../etc/passwd",
    "C:\\con\\nul",
    "\\textbf{x} & y % z # _ ^ ~",
    "[link](x) **b** | t |",
)
_NUMBERS = (
    "0",
    "-0",
    "1e309",
    "nan",
    "NaN",
    "inf",
    "None",
    "null",
    "true",
    "1,234.56",
    "١٢٣",
    "Ⅷ",
    "½",
    "0x1F",
    "10-year",
    "12:30",
)
_REPEATED = ("a", "the the the the", "a " * 300, "x" * 5000, "word " * 2000, "!" * 500, "ab" * 1000, "- " * 100)
_PUNCTUATION = (
    ".",
    "...",
    "?!",
    "« »",
    "“curly”",
    "’",
    "—",
    "John's well-known n't",
    "(((",
    "a.b.c",
    "http://x.y/z?a=b#c",
    "a@b.c",
)

HAND_MADE = (
    *_BLANK,
    *_CONTROL,
    *_DIRECTION,
    *_COMBINING,
    *_EMOJI,
    *_SCRIPTS,
    *_ODD,
    *_MARKUP,
    *_QUOTING,
    *_NUMBERS,
    *_REPEATED,
    *_PUNCTUATION,
)


def _mixtures() -> Iterator[str]:
    """Yield seeded mixtures: pieces of the hand-made texts, characters of all of Unicode, other normal forms."""
    rng = generator(0, "nasty")
    short = [text for text in HAND_MADE if 0 < len(text) < _SHORT]
    while True:
        kind = int(rng.integers(3))
        if kind == 0:
            glue = ("", " ", "\u00a0", "-")[int(rng.integers(4))]
            yield glue.join(short[i] for i in rng.integers(len(short), size=int(rng.integers(2, 12))))
        elif kind == 1:
            yield "".join(chr(int(point)) for point in rng.integers(sys.maxunicode + 1, size=int(rng.integers(1, 40))))
        else:
            text = short[int(rng.integers(len(short)))] + " cat sat on the mät"
            yield unicodedata.normalize(("NFC", "NFD", "NFKC", "NFKD")[int(rng.integers(4))], text)


NASTY: tuple[str, ...] = tuple(islice(dict.fromkeys(chain(HAND_MADE, islice(_mixtures(), 3 * COUNT))), COUNT))
"""The texts; some hold half of a surrogate pair, which no UTF-8 file can."""

WRITABLE: tuple[str, ...] = tuple(text for text in NASTY if not any("\ud800" <= c <= "\udfff" for c in text))
"""Those that a UTF-8 file can hold."""
