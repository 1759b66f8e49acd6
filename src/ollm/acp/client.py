"""The editor's unsaved files."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import OllmError, ToolFailure

if TYPE_CHECKING:
    from ollm.acp.connection import EditorClient

log = logging.getLogger("ollm.acp")
READ_TIMEOUT_SECONDS = 5.0
WRITE_TIMEOUT_SECONDS = 15.0
QUIET_SECONDS = 60.0  # An editor that did not answer is not asked for other files for this long.


class EditorBuffers:
    """Unsaved buffers of one session. The file on disk is used if the editor does not have the file or times out; a
    timeout is reported."""

    def __init__(self, editor: EditorClient) -> None:
        self._editor = editor
        self.session_id = ""
        self.report: Callable[[str], None] = log.warning
        self._editor_files: set[Path] = set()  # The editor's text of these files may differ from the disk's.
        self._unread: set[Path] = set()  # The editor was not asked about these files, or did not answer.
        # The editor gives these files with plain line ends, whatever they are on disk.
        self._plain_ends: set[Path] = set()
        self._quiet_until = 0.0

    @property
    def writes(self) -> bool:
        return self._editor.abilities.writes_files

    def withholds(self, path: Path) -> bool:
        return path in self._editor_files and path in self._unread

    async def read(self, path: Path) -> str | None:
        if not self._editor.abilities.reads_files:
            return None
        self._unread.add(path)
        if time.monotonic() < self._quiet_until:
            return None
        text = None
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                text = await self._editor.read_text_file(self.session_id, str(path))
                self._editor_files.add(path)
                self._note_line_ends(path, text)
        except TimeoutError:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            self.report(
                f"The editor did not give {path.name} within {READ_TIMEOUT_SECONDS:g} s: for a minute, files are read"
                " and written as they are on disk."
            )
            return None
        except OllmError as error:
            log.debug("The editor did not give a file: %s", error, extra={"operation": "read"})
        self._unread.discard(path)
        return text

    async def write(self, path: Path, text: str) -> bool:
        if not self._editor.abilities.writes_files:
            return False
        # Writing through the editor would lose its text, so it finds the file changed on disk instead.
        if path in self._unread:
            return self._refuse_write(path, "it does not answer")
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
                await self._write_with_its_ends(path, text)
        except TimeoutError:
            return self._refuse_write(path, f"no answer within {WRITE_TIMEOUT_SECONDS:g} s")
        except OllmError as error:
            return self._refuse_write(path, str(error))
        return True

    def _note_line_ends(self, path: Path, text: str) -> None:
        if "\r" in text:
            self._plain_ends.discard(path)
        elif "\n" in text:
            self._plain_ends.add(path)

    async def _write_with_its_ends(self, path: Path, text: str) -> None:
        """Send LF text to an editor that returned LF, since it restores the file's CRLF on saving. If it does not,
        send the text again with CRLF."""
        plain = text.replace("\r\n", "\n") if path in self._plain_ends else text
        ended = plain != text and has_line_ends(path)
        await self._editor.write_text_file(self.session_id, str(path), plain)
        if ended and not has_line_ends(path):
            await self._editor.write_text_file(self.session_id, str(path), text)

    def _refuse_write(self, path: Path, why: str) -> bool:
        """Raise ToolFailure for a file that came from the editor. Other files are written to disk."""
        log.warning("The editor did not write a file: %s", why, extra={"operation": "write"})
        if path in self._editor_files:
            raise ToolFailure("PermissionDenied", f"The editor did not write {path.name}: {why}")
        self.report(f"The editor did not write {path.name} ({why}): it is written on disk.")
        return False


def has_line_ends(path: Path) -> bool:
    """Return True if a file on disk uses CRLF line endings."""
    try:
        return b"\r\n" in path.read_bytes()
    except OSError:
        return False
