"""Taking the last edit back: on disk, and in the editor where one has the file open."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ollm.domain.tools import Location
from ollm.services.edit_ledger import EditLedger, LastEdit, UndoResult
from ollm.tools.framework.base import ToolContext


async def take_back_edit(ledger: EditLedger, files: ToolContext) -> UndoResult | None:
    """None when there is nothing left to take back. Raises OllmError when the file was changed by others since, or the
    editor does not let it be changed."""
    if files.editor is None:
        return ledger.undo(files.boundary)
    while edit := ledger.find_last_edit():
        done = await _restore_file(edit, await open_context(files, edit.path))
        edit.copy.unlink()
        if done:
            return UndoResult(path=edit.path, removed=edit.before is None)
    return None


async def open_context(files: ToolContext, path: Path) -> ToolContext:
    """The context in which one file may be reached, as the editor has it."""
    context = msgspec.structs.replace(files, boundary=files.boundary.approve_paths([path]))
    if context.editor is None:
        return context
    from ollm.tools.files.buffers import load_buffers

    return await load_buffers(context, [Location(target=str(path), access="write")])


def read_shown(context: ToolContext, path: Path) -> bytes | None:
    """What a file holds, as the editor shows it; None when there is none."""
    if not path.exists():
        return None
    with context.open_file(str(path)) as file:
        return file.read()


async def _restore_file(edit: LastEdit, context: ToolContext) -> bool:
    """False when the file already is as it was."""
    from ollm.tools.files.buffers import refuse_unsaved, write_buffer

    if not edit.changes_file(read_shown(context, edit.path)):
        return False
    given = str(edit.path)
    if edit.before is None:
        context.boundary.remove_file(given)
        return True
    refuse_unsaved(context, given)
    if not await write_buffer(context, edit.path, edit.before):
        context.boundary.write_file(given, edit.before)
    return True
