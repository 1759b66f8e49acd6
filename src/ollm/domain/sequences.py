"""Common parts of two sequences."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import takewhile


def count_same_objects(before: Sequence[object], after: Sequence[object]) -> int:
    """Count the identical objects at the front of both. Costs next to nothing, however many there are."""
    return sum(takewhile(bool, map(operator.is_, before, after)))
