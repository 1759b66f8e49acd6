"""`ollm -p --schema FILE`: the last message is one JSON document that fits a JSON schema.

The turn runs as usual, tools included. An answer that does not fit is requested once more, with the errors, without
tools and bound to the schema by the server if it can.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ollm.cli.text_printer import Printer, TextPrinter, show_turn
from ollm.domain.errors import UsageError
from ollm.domain.events import TextDelta
from ollm.domain.struct import Data
from ollm.runtime.base import Attachment
from ollm.runtime.conversation import LocalConversation
from ollm.system.atomic import MAX_SMALL_BYTES
from ollm.system.install_command import describe_extra_install
from ollm.system.terminal_text import escape_controls

MAX_ERRORS = 5
MAX_ERROR_CHARS = 300
FORM = """When your work is done, answer with one JSON document and nothing else: no Markdown, no words around it. \
It must fit this JSON schema:
"""


class AnswerSchema(Data, frozen=True):
    """A schema that an answer is checked against."""

    document: dict[str, Any]
    validator: Any

    async def run(
        self, conversation: LocalConversation, text: str, attachments: tuple[Attachment, ...], printer: Printer
    ) -> None:
        """Run the turn, and a second one if its answer does not fit. Sets the answer or its errors in the printer."""
        parts = conversation.parts
        form = FORM + msgspec.json.encode(self.document).decode()
        parts.prompt.entries.add_context("form of the answer", form, source="system", volatile=True)
        if not parts.prompt.tools:
            parts.state.answer_schema = self.document
        if isinstance(printer, TextPrinter):
            printer.is_silent = True
        await show_turn(conversation, text, attachments, printer)
        if printer.reason == "answered" and (errors := self._check(printer)):
            parts.state.answer_schema = self.document
            listed = "".join(f"- {error}\n" for error in errors)
            again = f"Your answer does not fit the JSON schema:\n{listed}Answer again, with the JSON document alone."
            await show_turn(conversation, again, (), printer)
            if printer.reason == "answered" and (errors := self._check(printer)):
                printer.unfit = printer.message = f"The answer does not fit the schema: {'; '.join(errors)}"
        if isinstance(printer, TextPrinter):
            printer.is_silent = False
            if printer.unfit:
                sys.stderr.write(f"ollm: {escape_controls(printer.unfit)}\n")
            elif printer.answers:
                printer.show(TextDelta(text=take_document(printer.last_text)))

    def _check(self, printer: Printer) -> list[str]:
        """Check the last message. Returns errors with their places, or sets the answer in the printer."""
        try:
            value = msgspec.json.decode(take_document(printer.last_text))
            errors = sorted(self.validator.iter_errors(value), key=lambda error: error.json_path)
        except msgspec.DecodeError as error:
            return [f"it is not a JSON document: {error}"]
        except RecursionError:
            return ["it is nested too deeply"]
        if not errors:
            printer.answers = (value,)
        return [f"{error.json_path}: {error.message}"[:MAX_ERROR_CHARS] for error in errors[:MAX_ERRORS]]


def take_document(text: str) -> str:
    """Return the content of the message's only code block; the whole message if it has none or several."""
    from markdown_it import MarkdownIt

    blocks = [token.content for token in MarkdownIt().parse(text) if token.type == "fence"]
    return blocks[0].strip() if len(blocks) == 1 else text.strip()


def read_schema(file: Path) -> AnswerSchema:
    """Read a schema. Raises UsageError with the place of its mistake."""
    try:
        with file.open("rb") as stream:  # The file may be a pipe.
            document = json.loads(stream.read(MAX_SMALL_BYTES))
        if not isinstance(document, dict):
            raise UsageError(f"{file} is not a JSON schema: expected an object.")
        validator = _make_validator(document, file)
        for example in (b"null", b"{}", b"[]", b'""'):
            next(validator.iter_errors(msgspec.json.decode(example)), None)
    except OSError as error:
        raise UsageError(f"Cannot read the schema {file}: {error.strerror or error}.") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{file}:{error.lineno}:{error.colno} is not JSON: {error.msg}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text.") from error
    except RecursionError as error:
        raise UsageError(f"{file} is nested too deeply, or a part of it refers to itself.") from error
    return AnswerSchema(document=document, validator=validator)


def _make_validator(document: dict[str, Any], file: Path) -> Any:
    try:
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry, Resource
        from referencing.exceptions import Unresolvable
        from referencing.jsonschema import DRAFT202012
    except ImportError as error:
        raise UsageError("--schema needs an extra package.", action=describe_extra_install("mcp")) from error
    kind = validator_for(document, default=Draft202012Validator)
    reference = ""
    registry: Any = Registry().with_resource("", Resource.from_contents(document, default_specification=DRAFT202012))
    try:
        kind.check_schema(document)
        for reference in _find_references(document):
            registry.resolver(document.get("$id", "")).lookup(reference)
    except SchemaError as error:
        raise UsageError(f"{file} is not a JSON schema: {error.json_path}: {error.message}.") from error
    except Unresolvable as error:
        action = "A schema may only refer to its own parts."
        raise UsageError(f"{file}: $ref {reference} leads nowhere.", action=action) from error
    return kind(document, registry=registry)  # With a registry, nothing is downloaded.


def _find_references(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("$ref"), str):
        yield value["$ref"]
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _find_references(one)
