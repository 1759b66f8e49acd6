"""What two sequences have in common."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import takewhile


def count_same_objects(before: Sequence[object], after: Sequence[object]) -> int:
    """How many objects at the front of both are the very same. Costs next to nothing, however many there are."""
    return sum(takewhile(bool, map(operator.is_, before, after)))
