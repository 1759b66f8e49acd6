"""Where the checkpoints of a workspace are, and whether there are any."""

from __future__ import annotations

import os
from pathlib import Path

from ollm.config.settings import CheckpointSettings
from ollm.domain.struct import Data


class CheckpointPlace(Data, frozen=True):
    """Which files, and where they are saved. `excluded` are paths of ours below the root."""

    root: Path
    folder: Path
    user_home: Path
    excluded: frozenset[str] = frozenset()


def find_reason_off(place: CheckpointPlace, settings: CheckpointSettings) -> str:
    """Why no checkpoints are taken here; nothing where they are."""
    if not settings.enabled:
        return "Checkpoints are off (checkpoints.enabled)."
    real = os.path.realpath(place.root)
    if real in (os.path.realpath(place.user_home), os.path.sep):
        return "Checkpoints are off in the home directory: open a project's folder to have them."
    return ""
