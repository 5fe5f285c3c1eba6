"""`whyscore experiment`: the papers' experiments, one command each.

They are found by name in `whyscore.experiments`, which uses everything and is used by nothing.
"""

import importlib
from typing import cast

from whyscore.cli.options import Command

EXAMPLES = """\
examples:
  whyscore experiment bmx-grid data.jsonl --human HUMAN_score --group LP -m token_f1 -e erasure -o run/
  whyscore experiment bmx-summeval --scores scores.csv --texts texts.jsonl -m token_f1 -e "lime(samples=100)" -o run/
  whyscore experiment bmx-stability data.jsonl --human HUMAN_score --group LP -m token_f1 --samples 100 1000 -o run/
"""


def commands() -> dict[str, Command]:
    """Return every experiment by its name."""
    return cast("dict[str, Command]", importlib.import_module("whyscore.experiments").experiments())
