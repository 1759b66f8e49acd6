"""A server's requests and notifications: folders, log lines, changed lists, and questions to the person."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Risk
from ollm.tools.framework.arguments import coerce_value
from ollm.tools.framework.output import clean_text

MAX_MESSAGE_CHARACTERS = 2_000
MAX_FIELDS = 20
MAX_TRIES = 3
KIND_NOTES = {
    "boolean": "yes or no",
    "array": "several, with commas between",
    "integer": "a whole number",
    "number": "a number",
}

AskPerson = Callable[[ConfirmationDetails], Awaitable[ConfirmationAnswer]]


class FormRefusedError(Exception):
    """The person declined to answer."""


async def fill_form(server: str, message: str, schema: Mapping[str, Any], ask: AskPerson) -> dict[str, Any]:
    """Ask the person for each field. A form without fields is a plain yes or no."""
    head = f"{server} asks: {clean_text(message)[:MAX_MESSAGE_CHARACTERS]}"
    properties, required = schema.get("properties"), schema.get("required")
    fields = list(properties.items())[:MAX_FIELDS] if isinstance(properties, Mapping) else []
    if not fields:
        await _ask_once(server, head, ask, typed=False)
    found: dict[str, Any] = {}
    for name, entry in fields:
        field = entry if isinstance(entry, Mapping) else {}
        must = isinstance(required, list) and name in required
        value = await _ask_field(server, head, (str(name), field), ask, required=must)
        if value is not None:
            found[str(name)] = value
        head = ""
    return found


async def _ask_field(
    server: str, head: str, field: tuple[str, Mapping[str, Any]], ask: AskPerson, *, required: bool
) -> Any:
    (name, entry), default = field, field[1].get("default")
    told = describe_field(name, entry, required=required)
    said = f"{head}\n{told}" if head else told
    for _ in range(MAX_TRIES):
        text = (await _ask_once(server, said, ask, typed=True)).text.strip()
        if not text and (default is not None or not required):
            return default
        try:
            return parse_value(text, entry)
        except ValueError as error:
            said = f"{error}\n{told}"
    raise FormRefusedError


async def _ask_once(server: str, said: str, ask: AskPerson, *, typed: bool) -> ConfirmationAnswer:
    details = ConfirmationDetails(
        call_id="",
        tool=server,
        description=said,
        risk=Risk.LOW,
        reason=f"the answer goes to the MCP server {server}: give it no passwords",
        locked=True,
        typed=typed,
    )
    try:
        answer = await ask(details)
    except ToolFailure as error:
        raise FormRefusedError from error
    if not answer.approved:
        raise FormRefusedError
    return answer


def describe_field(name: str, entry: Mapping[str, Any], *, required: bool) -> str:
    options, default = _read_options(_get_items(entry) or entry), entry.get("default")
    notes = [f"one of {', '.join(options)}"] if options else []
    notes += filter(None, [KIND_NOTES.get(str(entry.get("type")))])
    notes += [f"empty: {default}"] if default is not None else [] if required else ["may be empty"]
    told = ": ".join(str(part) for part in (entry.get("title") or name, entry.get("description")) if part)
    return clean_text(told) + (f" ({'; '.join(notes)})" if notes else "")


def _get_items(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    items = entry.get("items")
    return items if isinstance(items, Mapping) else {}


def _read_options(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a choice by their names."""
    titled = [each for each in entry.get("oneOf") or entry.get("anyOf") or () if isinstance(each, Mapping)]
    named = {str(each.get("title") or each.get("const")): str(each.get("const")) for each in titled}
    return named or {str(value): str(value) for value in entry.get("enum") or ()}


def parse_value(text: str, entry: Mapping[str, Any]) -> Any:
    """Parse typed text for a field. Raises ValueError with a sentence for the person."""
    kind, options = str(entry.get("type")), _read_options(entry)
    if not text:
        raise ValueError("This must not be empty.")
    if kind == "array":
        return [parse_value(part.strip(), _get_items(entry)) for part in text.split(",") if part.strip()]
    if kind in KIND_NOTES:
        value = coerce_value(text, {"type": kind})
        if isinstance(value, str) or (kind == "integer" and isinstance(value, float)):
            raise ValueError(f"{text!r} is not {KIND_NOTES[kind]}.")
        return value
    known = {word.lower(): value for name, value in options.items() for word in (value, name)}
    if options and text.lower() not in known:
        raise ValueError(f"{text!r} is not one of them.")
    return known.get(text.lower(), text)


log = logging.getLogger("ollm.mcp")
LOG_LEVELS = {  # The names of MCP, most of which are Python's.
    **logging.getLevelNamesMapping(),
    "NOTICE": logging.INFO,
    "ALERT": logging.ERROR,
    "EMERGENCY": logging.ERROR,
}
MAX_LOG_CHARACTERS = 500
MAX_TOLD_ERRORS = 5  # Further log lines of a server are only in the log file.


class ClientFeatures:
    """The callbacks of an SDK client. `tell` shows a line to the person, `ask` asks them; without `ask` every question
    of a server is declined with a notice. `pause` holds time limits while a question waits."""

    def __init__(
        self,
        server: str,
        workspace: Path,
        tell: Callable[[str], None],
        ask: AskPerson | None = None,
    ) -> None:
        self._server = server
        self._workspace = workspace
        self.tell = tell
        self._ask = ask
        self._told_errors = 0
        self.pause: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
        self.offers_changed = False  # It is set when the server announces other tools.

    def build_options(self) -> dict[str, Any]:
        from importlib.metadata import version

        from mcp_types import Implementation

        return {
            "message_handler": self._handle_message,
            "client_info": Implementation(name="ollm", version=version("ollm-cli")),
            "list_roots_callback": self._list_roots,
            "logging_callback": self._log_line,
            "elicitation_callback": self._answer_question,
        }

    async def _list_roots(self, _context: object) -> Any:
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

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
        """Log a line from the server's log. The first few errors are also shown."""
        level = LOG_LEVELS.get(str(params.level).upper(), logging.INFO)
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data, enc_hook=str).decode()
        text = " ".join(clean_text(data[: MAX_LOG_CHARACTERS * 2]).split())[:MAX_LOG_CHARACTERS]
        log.log(level, "%s: %s", self._server, text, extra={"operation": "server-log"})
        if level >= logging.ERROR and self._told_errors < MAX_TOLD_ERRORS:
            self._told_errors += 1
            self.tell(f"The MCP server {self._server} reports: {text}")

    async def _answer_question(self, _context: object, params: Any) -> Any:
        from mcp_types import ElicitResult

        if self._ask is None:
            asked = " ".join(clean_text(str(params.message)).split())[:MAX_LOG_CHARACTERS]
            self.tell(
                f"The MCP server {self._server} asked: {asked} - declined: ollm cannot ask in non-interactive mode."
            )
            return ElicitResult(action="decline")
        url = getattr(params, "url", None)
        message, schema = params.message, {} if url else params.requested_schema
        if url:
            message = f"{message[:MAX_MESSAGE_CHARACTERS]}\nOpen this address in your browser, then say yes: {url}"
        try:
            async with self.pause():
                content = await fill_form(self._server, message, schema, self._ask)
        except FormRefusedError:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if url else content)
