"""Snapshots of the active context: files to go back to (H)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.services.snapshots.form import ContextState as ContextState
    from ollm.services.snapshots.form import read_context as read_context
    from ollm.services.snapshots.manager import SnapshotManager as SnapshotManager

_PLACES = {"ContextState": "form", "read_context": "form", "SnapshotManager": "manager"}


def __getattr__(name: str) -> Any:
    """Imported when first named: most turns take no snapshot."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
