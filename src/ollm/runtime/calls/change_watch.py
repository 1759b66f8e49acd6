"""Who hears of calls that may change files. Apart from what runs calls: it is there before the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChangeWatch:
    """Hears of calls that may change files; this one does not care."""

    async def before_change(self, names: Sequence[str] | None) -> None:
        """A call is run next that writes these files and no others, or nobody knows which."""

    async def after_changes(self) -> None:
        """The calls of a step are over: what changes from here on is somebody else's."""
