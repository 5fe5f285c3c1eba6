"""Names and spec strings: `lime(samples=200)` -> object -> the same string.

`specs` is the grammar, `names` says which class a name stands for, `components` joins the two.
"""

from whyscore.registry.components import build, component, spec_of
from whyscore.registry.names import known, load, register, register_metric

__all__ = ["build", "component", "known", "load", "register", "register_metric", "spec_of"]
