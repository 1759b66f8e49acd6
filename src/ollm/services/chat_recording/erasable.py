"""What is kept of a session outside its own files, so that deleting it can reach everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol


class ErasableStore(Protocol):
    """A store that remembers something of sessions: snapshots, undo copies, a workspace's rows, the index."""

    def erase(self, session_id: str) -> None:
        """Forget a session for good; one that is unknown is no error."""


FindErasableStores = Callable[[str | None], Iterable[ErasableStore]]
"""The stores that may know a session, given the workspace it was held in."""


def find_no_stores(_workspace: str | None) -> Iterable[ErasableStore]:
    """For sessions that leave nothing anywhere else."""
    return ()
