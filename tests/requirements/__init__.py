"""Every requirement there is, one sentence each: S, T and P by number, D, H and W by the line where the rule stands.

Written from the requirements, not from the code. A rule stated twice is named once more as `Same`. `open.txt` lists
what no test covers yet: a covered item must leave it, one outside it must be covered.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.requirements import d, h, p, s, t, w
from tests.requirements.restated import Item, Same

_ITEMS: Mapping[str, Item] = {**s.ITEMS, **t.ITEMS, **p.ITEMS, **d.ITEMS, **h.ITEMS, **w.ITEMS}

REQUIREMENTS: dict[str, str] = {key: item.sentence if isinstance(item, Same) else item for key, item in _ITEMS.items()}
SAME: dict[str, str] = {key: item.as_item for key, item in _ITEMS.items() if isinstance(item, Same)}

OPEN_FILE = Path(__file__).with_name("open.txt")
OPEN: frozenset[str] = frozenset(OPEN_FILE.read_text(encoding="utf-8").split()) if OPEN_FILE.exists() else frozenset()

STRICT = True
"""Whether a missing test fails the run. False counts only."""
