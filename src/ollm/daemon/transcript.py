"""Message ranges for the web pages, rendered to sanitized HTML."""

from __future__ import annotations

from html import escape

from ollm.app.process import ProcessScope
from ollm.daemon.bodies import TranscriptMessage, TranscriptPage
from ollm.domain.messages import Message
from ollm.domain.session import FailedTurn
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.session import load_older_messages
from ollm.services.session_export.html import render_markdown_as_html, render_message_as_html
from ollm.system.terminal_text import escape_controls

MAX_OUTPUT_CHARS = 20_000  # A longer output is cut on the page.
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


def prepare_rendering() -> None:
    """Load what makes HTML, before the first page waits for it."""
    from ollm.store.session_files import document, loading, reader  # noqa: F401

    render_markdown_as_html(SAMPLE)


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
    process: ProcessScope, session_id: str, before: int | None, after: int, limit: int
) -> TranscriptPage:
    """At most `limit` messages with numbers between `after` and `before`, oldest first."""
    files = process.session_files
    older, loaded = load_older_messages(lambda page: files.read(session_id, page), before, limit)
    older = [  # The events of the turn show an answer under way.
        one for one in older if one.id <= loaded.last_number or not (loaded.partial and files.is_open(session_id))
    ]
    calls = {call.id: call for call in loaded.session.tool_calls}
    endings = {one.message_id: one for one in loaded.session.metadata.failed_turns or ()}
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
