"""A rule that stands in more than one place: whoever proves one of them proves the other."""

from typing import NamedTuple


class Same(NamedTuple):
    """The sentence here, and the item that says the same."""

    as_item: str
    sentence: str


Item = str | Same
