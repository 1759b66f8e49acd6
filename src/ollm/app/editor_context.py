"""Files as an editor has them, with what is changed there known to the checkpoints."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.errors import OllmError

if TYPE_CHECKING:
    from ollm.config.settings import ToolSettings
    from ollm.domain.lazy import Lazy
    from ollm.services.file_checkpoints import FileCheckpoints
    from ollm.system.paths import Boundary
    from ollm.tools.framework.base import EditorFiles, ToolContext


def create_file_context(
    boundary: Boundary, settings: ToolSettings, editor: EditorFiles | None, checkpoints: Lazy[FileCheckpoints]
) -> ToolContext:
    """How files are reached: as an editor has them, where there is one."""
    from ollm.tools.framework.base import ToolContext

    context = ToolContext(boundary=boundary, settings=settings)
    return add_editor(context, editor, checkpoints) if editor else context


def add_editor(context: ToolContext, editor: EditorFiles, checkpoints: Lazy[FileCheckpoints]) -> ToolContext:
    """The context of a conversation whose files an editor has open."""

    async def note_change(path: Path, before: bytes, after: bytes) -> None:
        if checkpoints.built is None:
            return
        try:
            await asyncio.to_thread(checkpoints.built.note_editor_change, path, before, after)
        except (OllmError, OSError):
            return  # the change is made; /rewind will say that the file has changed since

    return msgspec.structs.replace(context, editor=editor, changed_in_editor=note_change)
