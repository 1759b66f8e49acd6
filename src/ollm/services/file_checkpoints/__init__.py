"""States of a workspace's files, saved before and after the turns that change some, to go back to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.file_checkpoints.capture import CheckpointsOffError as CheckpointsOffError
    from ollm.services.file_checkpoints.records import CheckpointEraser as CheckpointEraser
    from ollm.services.file_checkpoints.records import CheckpointRecord as CheckpointRecord
    from ollm.services.file_checkpoints.restore import InterruptedRestore as InterruptedRestore
    from ollm.services.file_checkpoints.restore import RestoreResult as RestoreResult
    from ollm.services.file_checkpoints.restore import RestoreScope as RestoreScope
    from ollm.services.file_checkpoints.service import CheckpointView as CheckpointView
    from ollm.services.file_checkpoints.service import FileCheckpoints as FileCheckpoints
    from ollm.services.file_checkpoints.tree import CheckpointPlace as CheckpointPlace
    from ollm.services.file_checkpoints.tree import PathChange as PathChange
    from ollm.services.file_checkpoints.tree import RestorePlan as RestorePlan
    from ollm.services.file_checkpoints.tree import SkippedPath as SkippedPath

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "capture": ("CheckpointsOffError",),
        "records": ("CheckpointEraser", "CheckpointRecord"),
        "restore": ("InterruptedRestore", "RestoreResult", "RestoreScope"),
        "service": ("CheckpointView", "FileCheckpoints"),
        "tree": ("CheckpointPlace", "PathChange", "RestorePlan", "SkippedPath"),
    },
)
