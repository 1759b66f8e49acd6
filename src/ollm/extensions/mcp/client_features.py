"""A server's requests and notifications: folders, log lines, changed lists, and questions to the person."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Risk
from ollm.tools.framework.arguments import BOOLEAN_WORDS
from ollm.tools.framework.output import clean_text

MAX_MESSAGE_CHARACTERS = 2_000
MAX_FIELDS = 20
MAX_TRIES = 3
NUMBER_NAMES = {"integer": "whole number", "number": "number"}

AskPerson = Callable[[ConfirmationDetails], Awaitable[ConfirmationAnswer]]


class FormField(Data, frozen=True):
    """One field of a form. `options` maps the names of choices to their values."""

    name: str
    kind: str = "string"
    title: str = ""
    options: Mapping[str, str] = {}
    required: bool = False
    default: Any = None


class FormRefusedError(Exception):
    """The person declined to answer."""


def read_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """Read the fields of a form as far as its schema allows."""
    properties, named = schema.get("properties"), schema.get("required")
    required = named if isinstance(named, list) else ()
    found = properties.items() if isinstance(properties, Mapping) else ()
    return [_read_field(str(name), entry, required) for name, entry in list(found)[:MAX_FIELDS]]


def _read_field(name: str, entry: Any, required: Any) -> FormField:
    told = entry if isinstance(entry, Mapping) else {}
    items = told.get("items")
    inner = items if isinstance(items, Mapping) else told
    title = str(told.get("title") or name)
    about = str(told.get("description") or "")
    return FormField(
        name=name,
        kind=str(told.get("type") or "string"),
        title=f"{title}: {about}" if about else title,
        options=_read_options(inner),
        required=name in required,
        default=told.get("default"),
    )


def _read_options(entry: Mapping[str, Any]) -> dict[str, str]:
    titled = [each for each in entry.get("oneOf") or entry.get("anyOf") or () if isinstance(each, Mapping)]
    if titled:
        return {str(each.get("title") or each.get("const")): str(each.get("const")) for each in titled}
    values = [str(value) for value in entry.get("enum") or ()]
    titles = [str(title) for title in entry.get("enumNames") or ()]
    return dict(zip(titles if len(titles) == len(values) else values, values, strict=True))


async def fill_form(server: str, message: str, schema: Mapping[str, Any], ask: AskPerson) -> dict[str, Any]:
    """Ask the person for each field. A form without fields is a plain yes or no."""
    asked = f"{server} asks: {clean_text(message)[:MAX_MESSAGE_CHARACTERS]}"
    fields = read_fields(schema)
    if not fields:
        await _ask_once(server, asked, ask, typed=False)
    found: dict[str, Any] = {}
    for number, field in enumerate(fields):
        head = f"{asked}\n" if number == 0 else ""
        value = await _ask_field(server, head, field, ask)
        if value is not None:
            found[field.name] = value
    return found


async def _ask_field(server: str, head: str, field: FormField, ask: AskPerson) -> Any:
    said = f"{head}{describe_field(field)}"
    for _ in range(MAX_TRIES):
        text = (await _ask_once(server, said, ask, typed=True)).text.strip()
        if not text and field.default is not None:
            return field.default
        if not text and not field.required:
            return None
        value, fault = parse_value(text, field) if text else (None, "This must not be empty.")
        if not fault:
            return value
        said = f"{fault}\n{describe_field(field)}"
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


def describe_field(field: FormField) -> str:
    told = clean_text(field.title)
    notes = [f"one of {', '.join(field.options)}"] if field.options else []
    notes += ["yes or no"] if field.kind == "boolean" else []
    notes += ["several, with commas between"] if field.kind == "array" else []
    notes += [f"a {NUMBER_NAMES[field.kind]}"] if field.kind in NUMBER_NAMES else []
    notes += [f"empty: {_name_default(field)}"] if field.default is not None else []
    notes += [] if field.required or field.default is not None else ["may be empty"]
    return f"{told} ({'; '.join(notes)})" if notes else told


def _name_default(field: FormField) -> str:
    values = field.default if isinstance(field.default, list) else [field.default]
    names = {value: name for name, value in field.options.items()}
    return ", ".join(names.get(str(value), str(value)) for value in values)


def parse_value(text: str, field: FormField) -> tuple[Any, str]:
    """Parse typed text for a field; returns the value and an error message."""
    if field.kind == "boolean":
        answer = BOOLEAN_WORDS.get(text.lower())
        return answer, "Please answer yes or no." if answer is None else ""
    if field.kind in NUMBER_NAMES:
        try:
            return (int(text) if field.kind == "integer" else float(text)), ""
        except ValueError:
            return None, f"{text!r} is not a {NUMBER_NAMES[field.kind]}."
    if field.kind == "array":
        chosen = [(part.strip(), find_option(part.strip(), field)) for part in text.split(",") if part.strip()]
        wrong = [part for part, value in chosen if value is None]
        return [value for _, value in chosen], f"{wrong[0]!r} is not one of them." if wrong else ""
    value = find_option(text, field)
    return value, f"{text!r} is not one of them." if value is None else ""


def find_option(text: str, field: FormField) -> str | None:
    """Find the chosen option by name or value, ignoring case. A field without choices accepts any text."""
    if not field.options:
        return text
    known = {**{value.lower(): value for value in field.options.values()},
             **{name.lower(): value for name, value in field.options.items()}}  # fmt: skip
    return known.get(text.lower())


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
    """Discard a notice, for connections without an observer."""


@asynccontextmanager
async def pause_nothing() -> AsyncIterator[None]:
    """Pause nothing, for connections without time limits."""
    yield


class ClientFeatures:
    """The callbacks of an SDK client. `tell` shows a line to the person, `ask` asks them; without `ask` every question
    of a server is declined with a notice. `pause` holds time limits while a question waits."""

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
        """Log a line from the server's log. The first few errors are also shown."""
        level = LOG_LEVELS.get(str(params.level), logging.INFO)
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data, enc_hook=str).decode()
        text = " ".join(clean_text(data[: MAX_LOG_CHARACTERS * 2]).split())[:MAX_LOG_CHARACTERS]
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
        message, schema = params.message, {} if url else params.requested_schema
        if url:
            message = f"{message[:MAX_MESSAGE_CHARACTERS]}\nOpen this address in your browser, then say yes: {url}"
        try:
            async with self.pause():
                content = await fill_form(self._server, message, schema, self._ask)
        except FormRefusedError:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if url else content)
