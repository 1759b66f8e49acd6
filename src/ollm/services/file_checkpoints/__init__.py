"""States of a workspace's files, saved before and after the turns that change some, to go back to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.file_checkpoints.cleanup import CheckpointEraser as CheckpointEraser
    from ollm.services.file_checkpoints.place import CheckpointPlace as CheckpointPlace
    from ollm.services.file_checkpoints.plan import RestorePlan as RestorePlan
    from ollm.services.file_checkpoints.plan import SkippedPath as SkippedPath
    from ollm.services.file_checkpoints.records import CheckpointRecord as CheckpointRecord
    from ollm.services.file_checkpoints.restore import InterruptedRestore as InterruptedRestore
    from ollm.services.file_checkpoints.restore import RestoreResult as RestoreResult
    from ollm.services.file_checkpoints.restore import RestoreScope as RestoreScope
    from ollm.services.file_checkpoints.service import FileCheckpoints as FileCheckpoints
    from ollm.services.file_checkpoints.taking import CheckpointsOffError as CheckpointsOffError
    from ollm.services.file_checkpoints.tree import PathChange as PathChange
    from ollm.services.file_checkpoints.view import CheckpointView as CheckpointView

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "cleanup": ("CheckpointEraser",),
        "plan": ("RestorePlan", "SkippedPath"),
        "records": ("CheckpointRecord",),
        "restore": ("InterruptedRestore", "RestoreResult", "RestoreScope"),
        "place": ("CheckpointPlace",),
        "service": ("FileCheckpoints",),
        "taking": ("CheckpointsOffError",),
        "tree": ("PathChange",),
        "view": ("CheckpointView",),
    },
)
