"""What a server asks a person for in the middle of a call (elicitation): each field a question, each answer checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Risk
from ollm.tools.framework.output import clean_text

MAX_MESSAGE_CHARACTERS = 2_000
MAX_FIELDS = 20
MAX_TRIES = 3
NUMBER_NAMES = {"integer": "whole number", "number": "number"}
TRUE_WORDS = ("y", "yes", "true", "1", "on")
FALSE_WORDS = ("n", "no", "false", "0", "off")

AskPerson = Callable[[ConfirmationDetails], Awaitable[ConfirmationAnswer]]


class FormField(Data, frozen=True):
    """One field of a form. `options` are what it may be, where that is a choice."""

    name: str
    kind: str = "string"
    title: str = ""
    options: tuple[str, ...] = ()
    required: bool = False
    default: Any = None


class FormRefusedError(Exception):
    """The person does not want to answer."""


def read_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """The fields of a form, as far as its schema can be read."""
    properties, named = schema.get("properties"), schema.get("required")
    required = named if isinstance(named, list) else ()
    found = properties.items() if isinstance(properties, Mapping) else ()
    return [_read_field(str(name), entry, required) for name, entry in list(found)[:MAX_FIELDS]]


def _read_field(name: str, entry: Any, required: Any) -> FormField:
    told = entry if isinstance(entry, Mapping) else {}
    items = told.get("items")
    inner = items if isinstance(items, Mapping) else told
    choices = inner.get("enum") or [
        option.get("const") for option in inner.get("oneOf") or inner.get("anyOf") or () if isinstance(option, Mapping)
    ]
    title = str(told.get("title") or name)
    about = str(told.get("description") or "")
    return FormField(
        name=name,
        kind=str(told.get("type") or "string"),
        title=f"{title}: {about}" if about else title,
        options=tuple(str(option) for option in choices),
        required=name in required,
        default=told.get("default"),
    )


async def fill_form(server: str, message: str, schema: Mapping[str, Any], ask: AskPerson) -> dict[str, Any]:
    """What the person answers, field by field; a form without fields is a plain yes or no."""
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
    """What is asked for, in a line."""
    told = clean_text(field.title)
    notes = [f"one of {', '.join(field.options)}"] if field.options else []
    notes += ["yes or no"] if field.kind == "boolean" else []
    notes += ["several, with commas between"] if field.kind == "array" else []
    notes += [f"a {NUMBER_NAMES[field.kind]}"] if field.kind in NUMBER_NAMES else []
    notes += [f"empty: {field.default}"] if field.default is not None else [] if field.required else ["may be empty"]
    return f"{told} ({'; '.join(notes)})" if notes else told


def parse_value(text: str, field: FormField) -> tuple[Any, str]:
    """The typed text as the field wants it, or what is wrong with it."""
    if field.kind == "boolean":
        word = text.lower()
        known = word in (*TRUE_WORDS, *FALSE_WORDS)
        return word in TRUE_WORDS, "" if known else "Please answer yes or no."
    if field.kind in NUMBER_NAMES:
        try:
            return (int(text) if field.kind == "integer" else float(text)), ""
        except ValueError:
            return None, f"{text!r} is not a {NUMBER_NAMES[field.kind]}."
    if field.kind == "array":
        chosen = [part.strip() for part in text.split(",") if part.strip()]
        wrong = [part for part in chosen if field.options and part not in field.options]
        return chosen, f"{wrong[0]!r} is not one of them." if wrong else ""
    wrong_choice = bool(field.options) and text not in field.options
    return text, f"{text!r} is not one of them." if wrong_choice else ""
