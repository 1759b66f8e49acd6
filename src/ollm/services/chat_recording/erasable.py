"""What is kept of a session outside its own files, so that deleting it can reach everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol


class Trace(Protocol):
    """A store that remembers something of sessions: snapshots, undo copies, a workspace's rows, the index."""

    def erase(self, session_id: str) -> None:
        """Forget a session for good; one that is unknown is no error."""


Traces = Callable[[str | None], Iterable[Trace]]
"""The stores that may know a session, given the workspace it was held in."""


def no_traces(_workspace: str | None) -> Iterable[Trace]:
    """For sessions that leave nothing anywhere else."""
    return ()
