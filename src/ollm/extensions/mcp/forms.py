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
    """One field of a form. `options` are what it may be, where that is a choice, by the names a person reads."""

    name: str
    kind: str = "string"
    title: str = ""
    options: Mapping[str, str] = {}
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
    """What may be chosen, by its title or else by itself."""
    titled = [each for each in entry.get("oneOf") or entry.get("anyOf") or () if isinstance(each, Mapping)]
    if titled:
        return {str(each.get("title") or each.get("const")): str(each.get("const")) for each in titled}
    values = [str(value) for value in entry.get("enum") or ()]
    titles = [str(title) for title in entry.get("enumNames") or ()]
    return dict(zip(titles if len(titles) == len(values) else values, values, strict=True))


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
    notes += [f"empty: {_name_default(field)}"] if field.default is not None else []
    notes += [] if field.required or field.default is not None else ["may be empty"]
    return f"{told} ({'; '.join(notes)})" if notes else told


def _name_default(field: FormField) -> str:
    values = field.default if isinstance(field.default, list) else [field.default]
    names = {value: name for name, value in field.options.items()}
    return ", ".join(names.get(str(value), str(value)) for value in values)


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
        chosen = [(part.strip(), find_option(part.strip(), field)) for part in text.split(",") if part.strip()]
        wrong = [part for part, value in chosen if value is None]
        return [value for _, value in chosen], f"{wrong[0]!r} is not one of them." if wrong else ""
    value = find_option(text, field)
    return value, f"{text!r} is not one of them." if value is None else ""


def find_option(text: str, field: FormField) -> str | None:
    """What was chosen, by its name or its value, in whatever case; a field without choices takes every text."""
    if not field.options:
        return text
    known = {**{value.lower(): value for value in field.options.values()},
             **{name.lower(): value for name, value in field.options.items()}}  # fmt: skip
    return known.get(text.lower())
