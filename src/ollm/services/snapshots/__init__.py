"""Snapshots of the active context: files to go back to (H)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.snapshots.form import ContextState as ContextState
    from ollm.services.snapshots.form import read_context as read_context
    from ollm.services.snapshots.manager import SnapshotManager as SnapshotManager

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "form": (
            "ContextState",
            "read_context",
        ),
        "manager": ("SnapshotManager",),
    },
)
