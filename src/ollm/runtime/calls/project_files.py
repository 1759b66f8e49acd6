"""The project's text files as the model may see them: under the policy of the reading tools, inside the workspace."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from ollm.domain.errors import OllmError
from ollm.domain.files import DiscoveryOptions
from ollm.domain.tools import Location, PolicyRequest, Risk
from ollm.runtime.calls.permission import Policy
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery import FileDiscoveryService
from ollm.tools.files.file_change import CurrentFile, read_current
from ollm.tools.framework.base import ToolContext

MAX_TEXT_BYTES = 256 * 1024


class ProjectFiles:
    """Reads nothing that a reading tool would have to ask about. `ledger` knows what the model has seen."""

    def __init__(
        self, context: ToolContext, policy: Policy, ledger: EditLedger, discovery: FileDiscoveryService
    ) -> None:
        self._context = context
        self._policy = policy
        self._ledger = ledger
        self._discovery = discovery
        self._whole: dict[str, str] = {}  # files the model was shown all of, as they were then

    async def list_names(self) -> list[str]:
        """The files there are, ignored ones left out."""
        found = await self._discovery.collect_result(DiscoveryOptions(root=str(self._context.workspace)))
        return sorted(found.paths)

    def read_text(self, path: str) -> str | None:
        """The text of a file that may be read without a question; None when it may not, is none, or is too long."""
        found = self._read(path)
        return found.text if found else None

    def read_texts(self, paths: Iterable[str]) -> dict[str, str]:
        return {path: text for path in paths if (text := self.read_text(path)) is not None}

    def exists(self, path: str) -> bool:
        return (self._context.workspace / path).is_file()

    def runs(self, name: str) -> bool:
        """Whether the shell runs a script by this name: it is on the PATH, or a path that says itself how it is run."""
        if "/" not in name:
            return shutil.which(name) is not None
        text = self.read_text(name.removeprefix("./")) or ""
        return text.startswith("#!") and os.access(self._context.workspace / name, os.X_OK)

    def knows_whole(self, path: str, text: str) -> bool:
        """Whether the model was shown all of the file when it held this text."""
        return self._whole.get(path) == text

    def remember_whole(self, path: str) -> None:
        """The model is shown all of this file."""
        if found := self._read(path):
            self._whole[path] = found.text
            self._remember(path, found)

    def remember_change(self, path: str, before: str | None) -> None:
        """A call of the model changed this file and it was told how: one it knew all of it still knows."""
        if before is not None and self.knows_whole(path, before):
            self.remember_whole(path)
        elif found := self._read(path):
            self._remember(path, found)

    def _remember(self, path: str, found: CurrentFile) -> None:
        self._ledger.remember_file(self._context.boundary.check(path, "read"), found.status, found.content)

    def _read(self, path: str) -> CurrentFile | None:
        try:
            if not self._may_read(path):
                return None
            found = read_current(self._context, path)
        except (OllmError, OSError, ValueError):
            return None
        usable = found is not None and found.encoding is not None and len(found.content) <= MAX_TEXT_BYTES
        return found if usable else None

    def _may_read(self, path: str) -> bool:
        request = PolicyRequest(
            tool="read_file",
            params={"path": path},
            risk=Risk.LOW,
            locations=(Location(target=path, access="read"),),
            reads_only=True,
        )
        return self._policy.evaluate(request).decision == "allow"
