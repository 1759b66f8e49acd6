"""The editor's file system: files it has open are read and changed through it, after policy and boundary let them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from ollm.acp.client import ClientAbilities, Editor
from ollm.domain.errors import OllmError, ToolFailure

log = logging.getLogger("ollm.acp")
READ_TIMEOUT_SECONDS = 5.0
WRITE_TIMEOUT_SECONDS = 15.0


class EditorBuffers:
    """Of one session. An editor that does not answer, or not in time, is passed over: the file on disk counts."""

    def __init__(self, editor: Editor, abilities: ClientAbilities) -> None:
        self._editor = editor
        self._abilities = abilities
        self.session_id = ""  # known when the session is open
        self._given: set[Path] = set()  # what the editor holds: the disk may have another text

    async def read(self, path: Path) -> str | None:
        if not self._abilities.reads_files:
            return None
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                text = await self._editor.read_text_file(self.session_id, str(path))
                self._given.add(path)
                return text
        except (OllmError, TimeoutError) as error:
            log.debug("The editor did not give a file: %s", error, extra={"operation": "read"})
            return None

    async def write(self, path: Path, text: str) -> bool:
        if not self._abilities.writes_files:
            return False
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
                await self._editor.write_text_file(self.session_id, str(path), text)
        except (OllmError, TimeoutError) as error:
            log.warning("The editor did not write a file: %s", error, extra={"operation": "write"})
            if path in self._given:
                raise ToolFailure("PermissionDenied", f"The editor did not write {path.name}: {error}") from error
            return False
        return True
