"""Fork a session: copy it up to a message to a new session, and record where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from ollm.domain.clock import format_stamp
from ollm.domain.errors import UsageError
from ollm.domain.messages import TextPart, ThinkingPart
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.store.session_files.document import ReadCall, ReadMessage, iter_document
from ollm.store.session_files.files import CONTAINED, LAST_MESSAGE
from ollm.store.session_files.recovery import make_current_head, refuse_read_only
from ollm.store.session_files.store import SessionFiles

LATEST = "~"  # This sorts after every time.
_UNCOPIED_FIELDS = (CONTAINED, "workspaceState", "origin")
_FILE_FIELDS = ("record", "restoreId", "left")  # These fields of a step name file states of the parent.


class Fork(Data, frozen=True):
    """A new session with the messages of its parent up to `message_id`."""

    session_id: str
    parent: str
    message_id: int
    message_count: int

    @property
    def text(self) -> str:
        copied = f"{format_count(self.message_count, 'message')} up to #{self.message_id}"
        files = "Files stay as they are; a rewind in the fork reaches only its own turns."
        return f"Forked session {self.parent[:8]} ({copied}) to session {self.session_id[:8]}. {files}"


def fork_session(
    files: SessionFiles,
    session_id: str,
    number: int | None,
    new_id: str,
    now: datetime,
    count_tokens: Callable[[str], int],
) -> Fork:
    """Write the new session. Results of the calls in the last message are copied too."""
    with files.open_reader(session_id) as reader:
        refuse_read_only(reader, files.places.get_document_path(session_id))
        messages, end = _read_until(reader.read_messages(), number)
        last = messages[-1][0].id if messages else 0
        if not messages or (number is not None and all(message.id != number for message, _ in messages)):
            problem = f"There is no message {number}." if number else "The session has no readable messages."
            raise UsageError(problem, action="See them with `ollm sessions view`.")
        asked = {name for message, _ in messages for name in message.call_ids}
        calls = [entry for entry in reader.read_calls() if entry[0].id in asked and entry[0].message_id <= last]
        head = make_current_head(reader.head, reader.session)
    fork = Fork(session_id=new_id, parent=session_id, message_id=number or last, message_count=len(messages))
    title = reader.session.metadata.title
    at = max(format_stamp(now), messages[-1][0].timestamp)
    metadata = {
        **_cut_metadata(head["metadata"], last, end),
        "tokenCount": sum(map(count_tokens, _iter_texts(messages, calls))),
        "title": title and f"{title} (from #{fork.message_id})",
        "parent": {"sessionId": session_id, "messageId": fork.message_id},
        LAST_MESSAGE: last,
    }
    head |= {"sessionId": new_id, "startTime": at, "lastActivity": at, "metadata": metadata}
    files.install(new_id, iter_document(head, (line for _, line in messages), (line for _, line in calls)))
    return fork


def _read_until(entries: Iterable[ReadMessage], number: int | None) -> tuple[list[ReadMessage], str]:
    """Read up to a message, with the results of its calls. Returns also the time of the first message after them."""
    taken: list[ReadMessage] = []
    for entry in entries:
        message = entry[0]
        if number is not None and message.id > number and (message.role != "tool" or not taken):
            return taken, message.timestamp
        taken.append(entry)
    return taken, LATEST


def _cut_metadata(metadata: dict[str, Any], last: int, end: str) -> dict[str, Any]:
    """Drop what happened after the last copied message, and what belongs to the parent alone."""
    kept = {name: value for name, value in metadata.items() if name not in _UNCOPIED_FIELDS}
    for name in ("compressionHistory", "modeHistory", "contextHistory"):
        kept[name] = [
            {key: value for key, value in step.items() if key not in _FILE_FIELDS}
            for step in kept[name]
            if str(step.get("timestamp", "")) < end
        ]
    kept["compressionCount"] = len(kept["compressionHistory"])
    if "failedTurns" in kept:
        kept["failedTurns"] = [turn for turn in kept["failedTurns"] if turn["messageId"] <= last]
    return kept


def _iter_texts(messages: list[ReadMessage], calls: list[ReadCall]) -> Iterable[str]:
    for message, _ in messages:
        yield from (part.text for part in message.parts if isinstance(part, TextPart | ThinkingPart))
    yield from (call.result.llm_content for call, _ in calls if call.result)
