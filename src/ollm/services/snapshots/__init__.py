"""Snapshots of the active context: files to go back to (H)."""

from ollm.services.snapshots.form import ContextState, context_of
from ollm.services.snapshots.manager import SnapshotManager

__all__ = ["ContextState", "SnapshotManager", "context_of"]
