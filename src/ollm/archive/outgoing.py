"""Outgoing records of a session, without secrets or the content of hidden files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.archive.sending import ArchivedHead, ArchiveRecord, SessionMovedOnError, SessionSender, make_batches
from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import RedactField, redact_record
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import document, journal
from ollm.store.session_index.entries import make_call_entry, make_message_entry

if TYPE_CHECKING:
    from ollm.store.session_files.reader import SessionReader

IsHidden = Callable[[str], bool]
HIDDEN_TEXT = "(left out of the archive: .ollmignore hides this file)"
_RESULT_TEXTS = ("llmContent", "returnDisplay", "fullOutput", "diff")
_WRITTEN_ARGUMENTS = ("content", "edits")
_LISTED_PATH = re.compile(r"^\s*([^\s:][^:\n]*?)(?:[:-]\d+[:-].*|:\s*.*|\s*)$")


class RecordCleaner:
    """Cleaner of records. `redact` removes secrets from a named text (None: keep them), `is_hidden` hides paths."""

    def __init__(self, redact: RedactField | None, is_hidden: IsHidden) -> None:
        self.redact = redact
        self._is_hidden = is_hidden

    def clean_record(self, record: JsonObject) -> JsonObject:
        """Clean a head or a message."""
        return record if self.redact is None else redact_record(record, self.redact)

    def clean_call(self, call: JsonObject) -> JsonObject:
        return self.clean_record(self._hide_results(call))

    def _hide_results(self, call: JsonObject) -> JsonObject:
        """Drop the content of hidden files: the whole result if the call names one, else the lines about one."""
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
        """Drop lines that begin with the path of a hidden file, as in lists and searches."""
        lines = text.split("\n")
        kept = [line for line in lines if not self._begins_with_hidden(line)]
        return text if len(kept) == len(lines) else "\n".join([*kept, HIDDEN_TEXT])

    def _begins_with_hidden(self, line: str) -> bool:
        found = _LISTED_PATH.match(line[:1000])
        path = found[1] if found else ""
        is_path = 0 < len(path) < 500 and ("/" in path or "." in path or " " not in path)
        return is_path and self._is_hidden(path)


def _iter_paths(arguments: JsonObject) -> Iterator[str]:
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


PIECE_BYTES = 256 * 1024
FILE_ENDS = (".json", ".journal")
_JOURNAL_POSITION = 1_000_000_000


class OutgoingSession:
    """One pass over a session. `describe` returns the list entry for the part read so far."""

    def __init__(self, reader: SessionReader, cleaner: RecordCleaner, directory: Path) -> None:
        self._reader = reader
        self._cleaner = cleaner
        self._directory = directory
        self._head = cleaner.clean_record(document.complete_head(reader.head, reader.session))
        self._messages = 0

    def iter_records(self) -> Iterator[ArchiveRecord]:
        yield ArchiveRecord("head", "", document.encode_head(self._head), 0)
        for message, line in self._reader.read_messages():
            yield self._make_message(message, line)
        for call, line in self._reader.read_calls():
            yield self._make_call(call, line)
        if self._cleaner.redact is None and (self._reader.damage or self._reader.foreign):
            yield from self._iter_pieces()

    def _make_message(self, message: Message, body: bytes) -> ArchiveRecord:
        self._messages += 1
        before = journal.parse_object(body)
        clean = self._cleaner.clean_record(before)
        if clean != before:
            body = journal.encode_json(clean)
            message = document.parse_message(body) or replace(message, parts=())
        entry = make_message_entry(message)
        return ArchiveRecord("message", str(message.id), body, message.id, entry if entry.text else None)

    def _make_call(self, call: ToolCallRecord, body: bytes) -> ArchiveRecord:
        before = journal.parse_object(body)
        clean = self._cleaner.clean_call(before)
        if clean != before:
            body = journal.encode_json(clean)
            call = document.parse_call(body) or replace(call, args={}, result=None)
        return ArchiveRecord("call", call.id, body, None, make_call_entry(call))

    def _iter_pieces(self) -> Iterator[ArchiveRecord]:
        """Yield the session's files unchanged, in pieces."""
        for number, end in enumerate(FILE_ENDS):
            path = self._directory / f"{self._reader.session.session_id}{end}"
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                for index, piece in enumerate(iter(lambda: file.read(PIECE_BYTES), b"")):
                    position = number * _JOURNAL_POSITION + index
                    yield ArchiveRecord("file", f"{end}:{index:08d}", piece, position)

    def describe(self) -> ArchivedHead:
        session = self._reader.session
        metadata: JsonObject = self._head.get("metadata") or {}
        title = metadata.get("title")
        return ArchivedHead(
            title=title if isinstance(title, str) else "",
            model=session.model,
            workspace=session.metadata.workspace,
            origin=session.metadata.origin,
            start_time=session.start_time,
            last_activity=session.last_activity,
            message_count=self._messages,
            token_count=session.metadata.token_count,
            redacted=self._cleaner.redact is not None,
            damaged=self._reader.damage,
        )


OpenOutgoing = Callable[[], AbstractContextManager[OutgoingSession]]


def ship_session(open_outgoing: OpenOutgoing, sender: SessionSender, *, known: bool = True) -> int:
    """Bring the archive up to date with the session and return the number of records sent. Safe to interrupt and
    repeat. If it is not `known` whether this machine sent the session before, the content decides whether it was
    continued elsewhere."""
    try:
        sender.begin()
    except SessionMovedOnError:
        if known or not _has_all(open_outgoing, sender):
            raise
        sender.adopt()
    left, told = sender.list_digests(), None
    with open_outgoing() as outgoing:
        for batch in make_batches(outgoing.iter_records()):
            by_name = {record.name: record for record in batch}
            if new := [record for name, record in by_name.items() if left.pop(name, None) != record.digest]:
                told = outgoing.describe()
                sender.send(new, told)
        head = outgoing.describe()
    if left:  # These are not in the session any more.
        sender.send([ArchiveRecord(kind, key, None) for kind, key in left], head)
    elif sender.sent and told != head:
        sender.send([], head)
    return sender.sent


def _has_all(open_outgoing: OpenOutgoing, sender: SessionSender) -> bool:
    """Return True if the archive has nothing that is not in the session too. The head changes with every message."""
    with open_outgoing() as outgoing:
        here = {record.name: record.digest for record in outgoing.iter_records()}
    return all(name[0] == "head" or here.get(name) == digest for name, digest in sender.list_digests().items())
