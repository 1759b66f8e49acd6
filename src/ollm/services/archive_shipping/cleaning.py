"""What is taken out of a record before it leaves: secrets, and results about files that `.ollmignore` hides."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from ollm.domain.messages import JsonObject
from ollm.services.redaction import MARK, is_secret_name

Redact = Callable[[str], str]
IsHidden = Callable[[str], bool]
HIDDEN_TEXT = "(left out of the archive: .ollmignore hides this file)"
_KEPT_MESSAGE_FIELDS = frozenset({"id", "role", "timestamp"})
_KEPT_PART_FIELDS = frozenset({"type", "id", "mediaType", "data"})
_KEPT_CALL_FIELDS = frozenset({"id", "name", "timestamp", "messageId", "status"})
_KEPT_HEAD_FIELDS = frozenset({"sessionId", "startTime", "lastActivity", "model", "provider"})
_RESULT_TEXTS = ("llmContent", "returnDisplay", "fullOutput", "diff")
_WRITTEN_ARGUMENTS = ("content", "edits")
_LISTED_PATH = re.compile(r"^\s*([^\s:][^:\n]*?)(?:[:-]\d+[:-].*|:\s*.*|\s*)$")


class RecordCleaner:
    """`redact` takes secrets out of a text, or is None to leave them; `is_hidden` says which paths are not to leave."""

    def __init__(self, redact: Redact | None, is_hidden: IsHidden) -> None:
        self.redact = redact
        self._is_hidden = is_hidden

    def clean_message(self, message: JsonObject) -> JsonObject:
        if self.redact is None:
            return message
        parts = message.get("parts")
        cleaned = self._redact_fields(message, _KEPT_MESSAGE_FIELDS | {"parts"})
        if isinstance(parts, list):
            cleaned["parts"] = [
                self._redact_fields(part, _KEPT_PART_FIELDS) if isinstance(part, dict) else part for part in parts
            ]
        return cleaned

    def clean_call(self, call: JsonObject) -> JsonObject:
        hidden = self._hide_results(call)
        return hidden if self.redact is None else self._redact_fields(hidden, _KEPT_CALL_FIELDS)

    def clean_head(self, head: JsonObject) -> JsonObject:
        return head if self.redact is None else self._redact_fields(head, _KEPT_HEAD_FIELDS)

    def _redact_fields(self, fields: JsonObject, kept: frozenset[str]) -> JsonObject:
        return {name: value if name in kept else self._redact_named(name, value) for name, value in fields.items()}

    def _redact_named(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return MARK if value and is_secret_name(name) else self._redact_text(value)
        return self._redact_value(value)

    def _redact_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, dict):
            return {self._redact_text(name): self._redact_named(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._redact_value(item) for item in value]
        return value

    def _redact_text(self, text: str) -> str:
        return self.redact(text) if self.redact else text

    def _hide_results(self, call: JsonObject) -> JsonObject:
        """Without the content of hidden files: all of the result when the call names one, else the lines about one."""
        arguments, result = call.get("args"), call.get("result")
        named = any(map(self._is_hidden, _iter_paths(arguments))) if isinstance(arguments, dict) else False
        if named and isinstance(arguments, dict):
            written = {name: HIDDEN_TEXT for name in _WRITTEN_ARGUMENTS if name in arguments}
            call = {**call, "args": {**arguments, **written}}
        if not isinstance(result, dict):
            return call
        texts = {name: result[name] for name in _RESULT_TEXTS if isinstance(result.get(name), str) and result[name]}
        clean = {name: HIDDEN_TEXT if named else self._drop_hidden_lines(text) for name, text in texts.items()}
        pictures: JsonObject = {"images": []} if named and result.get("images") else {}
        if clean == texts and not pictures:
            return call
        return {**call, "result": {**result, **clean, **pictures}}

    def _drop_hidden_lines(self, text: str) -> str:
        """Lists and searches begin a line with its path; those of hidden files go."""
        lines = text.split("\n")
        kept = [line for line in lines if not self._begins_with_hidden(line)]
        return text if len(kept) == len(lines) else "\n".join([*kept, HIDDEN_TEXT])

    def _begins_with_hidden(self, line: str) -> bool:
        found = _LISTED_PATH.match(line[:1000])
        return bool(found and _looks_like_path(found[1]) and self._is_hidden(found[1]))


def _iter_paths(arguments: JsonObject) -> Iterator[str]:
    """What a call names as a path: its arguments, and the words of a command."""
    for name, value in arguments.items():
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str) or not text:
                continue
            if name in ("path", "paths", "cwd", "file", "files", "filePattern"):
                yield text
            elif name == "command":
                yield from _iter_command_words(text)


def _iter_command_words(command: str) -> Iterator[str]:
    try:
        words = shlex.split(command, comments=False)
    except ValueError:
        words = command.split()
    for word in words:
        for part in re.split(r"[<>;|&()=]+", word):
            if part and not part.startswith("-"):
                yield part


def _looks_like_path(text: str) -> bool:
    return len(text) < 500 and ("/" in text or "." in text or " " not in text)
