"""Reads the project's text files for a model, in the workspace and under the policy of the reading tools."""

from __future__ import annotations

from pathlib import Path

from ollm.domain.errors import OllmError
from ollm.domain.files import DiscoveryOptions
from ollm.domain.tools import Location, PolicyRequest, Risk
from ollm.policy.engine import PolicyEngine
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.tools.files.file_change import CurrentFile, read_current
from ollm.tools.framework.base import ToolContext

MAX_TEXT_BYTES = 256 * 1024


class ProjectFiles:
    """Reads only files that need no confirmation. `ledger` records the files the model has seen."""

    def __init__(
        self,
        context: ToolContext,
        policy: PolicyEngine,
        ledger: EditLedger,
        discovery: FileDiscoveryService,
    ) -> None:
        self._context = context
        self._policy = policy
        self._ledger = ledger
        self._discovery = discovery

    async def list_names(self) -> list[str]:
        """List the files, without ignored ones."""
        found = await self._discovery.collect_result(DiscoveryOptions(root=str(self._context.workspace)))
        return sorted(found.paths)

    def read_text(self, path: str) -> str | None:
        """Return the text of a file readable without confirmation, or None if it is not, is missing or is too long."""
        found = self._read(path)
        return found.text if found else None

    def exists(self, path: str) -> bool:
        try:
            return (self._context.workspace / path).is_file()
        except OSError:  # The name may be too long.
            return False

    def is_current(self, path: str) -> bool:
        """Return True if the model has the current file."""
        found = self._read(path)
        return found is not None and not self._ledger.is_stale(self._check(path), found.status, found.content)

    def remember(self, path: str) -> None:
        """Record that the model has the current file: it has seen all of it, or changed it."""
        if found := self._read(path):
            self._ledger.remember_file(self._check(path), found.status, found.content)

    def _check(self, path: str) -> Path:
        return self._context.boundary.check(path, "read")

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
