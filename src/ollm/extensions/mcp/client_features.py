"""What a server may ask of its client or tell it: folders, log lines, changed lists, and questions to the person."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from ollm.extensions.mcp.forms import MAX_MESSAGE_CHARACTERS, AskPerson, FormRefusedError, fill_form
from ollm.tools.framework.output import clean_text

log = logging.getLogger("ollm.mcp")
LOG_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.ERROR,
    "alert": logging.ERROR,
    "emergency": logging.ERROR,
}
MAX_LOG_CHARACTERS = 500
MAX_TOLD_ERRORS = 5  # log lines of a server that the person is shown; the others are in the log file


def discard_notice(text: str) -> None:
    """For connections that nobody watches."""


@asynccontextmanager
async def pause_nothing() -> AsyncIterator[None]:
    """For connections without time limits."""
    yield


class ClientFeatures:
    """The callbacks an SDK client is given. `tell` shows a line to the person, `ask` asks them; without `ask` every
    question of a server is declined, and said. `pause` holds time limits while a question waits."""

    def __init__(
        self,
        server: str,
        workspace: Path | None = None,
        tell: Callable[[str], None] = discard_notice,
        ask: AskPerson | None = None,
    ) -> None:
        self._server = server
        self._workspace = workspace
        self._tell = tell
        self._ask = ask
        self._told_errors = 0
        self.pause: Callable[[], AbstractAsyncContextManager[None]] = pause_nothing
        self.offers_changed = False  # the server said that it has other tools now

    def build_options(self) -> dict[str, Any]:
        from importlib.metadata import version

        from mcp_types import Implementation

        return {
            "message_handler": self._handle_message,
            "client_info": Implementation(name="ollm", version=version("ollm-cli")),
            "list_roots_callback": self._list_roots if self._workspace else None,
            "logging_callback": self._log_line,
            "elicitation_callback": self._answer_question,
        }

    async def _list_roots(self, _context: object) -> Any:
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        assert self._workspace is not None
        return ListRootsResult(roots=[Root(uri=FileUrl(self._workspace.as_uri()), name=self._workspace.name)])

    async def _handle_message(self, message: object) -> None:
        from mcp.types import (
            PromptListChangedNotification,
            ResourceListChangedNotification,
            ToolListChangedNotification,
        )

        changes = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)
        if isinstance(message, changes):
            self.offers_changed = True

    async def _log_line(self, params: Any) -> None:
        """A line of the server's log goes to ours; an error is shown too, as long as there are few."""
        level = LOG_LEVELS.get(str(params.level), logging.INFO)
        text = " ".join(clean_text(_render_data(params.data)[: MAX_LOG_CHARACTERS * 2]).split())[:MAX_LOG_CHARACTERS]
        log.log(level, "%s: %s", self._server, text, extra={"operation": "server-log"})
        if level >= logging.ERROR and self._told_errors < MAX_TOLD_ERRORS:
            self._told_errors += 1
            self._tell(f"The MCP server {self._server} reports: {text}")

    async def _answer_question(self, _context: object, params: Any) -> Any:
        from mcp_types import ElicitResult

        if self._ask is None:
            asked = " ".join(clean_text(str(params.message)).split())[:MAX_LOG_CHARACTERS]
            self._tell(
                f"The MCP server {self._server} asked: {asked} - declined: ollm cannot ask in non-interactive mode."
            )
            return ElicitResult(action="decline")
        url = getattr(params, "url", None)
        message, schema = (_word_link(params, url), {}) if url else (params.message, params.requested_schema)
        try:
            async with self.pause():
                content = await fill_form(self._server, message, schema, self._ask)
        except FormRefusedError:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if url else content)


def _word_link(params: Any, url: str) -> str:
    return f"{params.message[:MAX_MESSAGE_CHARACTERS]}\nOpen this address in your browser, then say yes: {url}"


def _render_data(data: Any) -> str:
    import json

    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
