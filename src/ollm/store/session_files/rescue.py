"""A copy of a session elsewhere, when the place it belongs to cannot be written."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.errors import StorageError, UnsavedError
from ollm.store.session_files import journal, layout
from ollm.system.atomic import replace_file

if TYPE_CHECKING:
    from ollm.store.session_files.writer import SessionWriter


def count_unsaved_messages(writer: SessionWriter) -> int:
    """How many of the records that wait are messages."""
    records = [journal.parse_record(line) for line in writer.pending]
    return sum(isinstance(record.message, msgspec.Raw) for record in records)


def write_rescue_copy(writer: SessionWriter) -> Path | None:
    """The whole session, with what is only in memory, in a new private directory for temporary files; None when that
    cannot be written either."""
    try:
        path = Path(tempfile.mkdtemp(prefix="ollm-unsaved-")) / f"{writer.session_id}.json"
        with contextlib.closing(writer.open_reader(document=writer.document.find_readable(path))) as reader:
            replace_file(path, layout.iter_document(writer.head, reader.iter_messages(), reader.iter_calls()))
    except (OSError, StorageError):
        return None
    return path


def make_unsaved_error(writer: SessionWriter, cause: StorageError, *, rescue: bool) -> UnsavedError:
    """What is only in memory, and the way out: with `rescue` a copy elsewhere, for a session that is about to end."""
    count = count_unsaved_messages(writer)
    what = "1 message" if count == 1 else f"{count} messages" if count else "The last change"
    reason = getattr(cause.__cause__, "strerror", None) or cause.message.rstrip(".")
    message = f"Not saved: {what} of session {writer.session_id}. {writer.directory} refuses it: {reason}."
    if not rescue:
        return UnsavedError(message, action="It is kept in memory: free space or fix the permissions, then try again.")
    copy = write_rescue_copy(writer)
    if copy is None:
        action = "No copy could be written elsewhere either: what is not saved ends with this process."
    else:
        action = f"The whole session is in {copy}; move that file to {writer.directory} once it can be written."
    return UnsavedError(message, action=action)
