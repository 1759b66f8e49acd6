"""Messages for the web pages: a range of them, each as HTML rendered and sanitized here."""

from __future__ import annotations

import contextlib
from html import escape

from ollm.app import ProcessScope
from ollm.daemon.bodies import TranscriptMessage, TranscriptPage
from ollm.domain.messages import Message
from ollm.domain.session import FailedTurn, Session
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.session import load_older_messages
from ollm.services.session_export.html import render_markdown_as_html, render_message_as_html
from ollm.store.session_files.loading import LoadedSession
from ollm.store.session_files.store import MessagePage
from ollm.system.terminal_text import escape_controls

MAX_OUTPUT_CHARS = 20_000  # of one output on a page
MAX_KEPT_BYTES = 32 * 1024 * 1024  # of files; a larger session is read anew for each page
MAX_KEPT_SESSIONS = 3
ENDINGS = {
    "no-server": "No model server answered.",
    "model-error": "The model failed.",
    "context-full": "The context is full.",
    "loop": "Stopped: the model is looping.",
    "timeout": "Timed out.",
    "cancelled": "Stopped.",
    "denied": "Denied by policy.",
}
SAMPLE = "A *word*\n\n```python\nprint(1)\n```\n"


class TranscriptCache:
    """The sessions that had to be read whole last, as long as their files stay as they are.

    Of a document in our own layout a page costs no more than itself; one in another layout is read to its end for
    each page, and who scrolls asks for many.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, ...], Session]] = {}

    def load(
        self, process: ProcessScope, session_id: str, before: int | None, limit: int
    ) -> tuple[list[Message], Session]:
        """The messages before number `before`, at least `limit` of them where there are, and their session."""
        stamp, size = _make_stamp(process, session_id)
        known = self._kept.get(session_id)
        if known and known[0] == stamp:
            return [message for message in known[1].messages if before is None or message.id < before], known[1]
        skipped = 0

        def read(page: MessagePage) -> LoadedSession:
            nonlocal skipped
            found = process.session_files.read(session_id, page)
            skipped = found.skipped
            return found

        older, session = load_older_messages(read, before, limit)
        if before is None and not skipped and size <= MAX_KEPT_BYTES:
            newest = [found for found in self._kept.items() if found[0] != session_id][1 - MAX_KEPT_SESSIONS :]
            self._kept = {**dict(newest), session_id: (stamp, session)}
        return older, session


def prepare_rendering() -> None:
    """Load what makes HTML, before the first page waits for it."""
    from ollm.store.session_files import document, loading, scan  # noqa: F401

    render_markdown_as_html(SAMPLE)


def _make_stamp(process: ProcessScope, session_id: str) -> tuple[tuple[int, ...], int]:
    home = process.session_files.places.find_home(session_id)
    found: list[int] = []
    size = 0
    for end in (".json", ".journal") if home else ():
        with contextlib.suppress(OSError):
            stat = (home / f"{session_id}{end}").stat() if home else None
            found += [stat.st_ino, stat.st_mtime_ns, stat.st_size] if stat else []
            size += stat.st_size if stat else 0
    return tuple(found), size


def render_message(message: Message, calls: dict[str, ToolCallRecord]) -> str:
    if message.role == "tool" and not message.text:
        return ""
    return escape_controls("".join(render_message_as_html(message, calls.get, MAX_OUTPUT_CHARS)))


def render_ending(turn: FailedTurn | None) -> str:
    """Render why the turn ended with this message."""
    if turn is None:
        return ""
    words = turn.message or ENDINGS.get(turn.reason, "The turn failed.")
    return f'<p class="notice {"info" if turn.reason == "cancelled" else "error"}">{escape(escape_controls(words))}</p>'


def read_transcript(
    process: ProcessScope, cache: TranscriptCache, session_id: str, before: int | None, after: int, limit: int
) -> TranscriptPage:
    """At most `limit` messages with numbers between `after` and `before`, oldest first."""
    older, session = cache.load(process, session_id, before, limit)
    calls = {call.id: call for call in session.tool_calls}
    endings = {one.message_id: one for one in session.metadata.failed_turns or ()}
    shown = [message for message in older[-limit:] if message.id > after]
    return TranscriptPage(
        last=older[-1].id if older else 0,
        messages=[
            TranscriptMessage(
                number=message.id,
                role=message.role,
                html=render_message(message, calls) + render_ending(endings.get(message.id)),
            )
            for message in shown
        ],
    )
