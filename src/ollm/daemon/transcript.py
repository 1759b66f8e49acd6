"""What was said as the pages show it: a stretch of messages, each as HTML that was made and cleaned here."""

from __future__ import annotations

from ollm.app import ProcessScope
from ollm.daemon.bodies import TranscriptMessage, TranscriptPage
from ollm.runtime.history import load_older_messages
from ollm.services.session_export.html_message import render_message_as_html
from ollm.system.terminal_text import escape_controls

MAX_OUTPUT_CHARS = 20_000  # of one output on a page


def read_transcript(
    process: ProcessScope, session_id: str, before: int | None, after: int, limit: int
) -> TranscriptPage:
    """At most `limit` messages with numbers between `after` and `before`, oldest first."""
    older, session = load_older_messages(lambda part: process.session_files.read(session_id, part), before, limit)
    calls = {call.id: call for call in session.tool_calls}
    shown = [message for message in older[-limit:] if message.id > after]
    return TranscriptPage(
        last=older[-1].id if older else 0,
        messages=[
            TranscriptMessage(
                number=message.id,
                role=message.role,
                html=""
                if message.role == "tool" and not message.text
                else escape_controls("".join(render_message_as_html(message, calls.get, MAX_OUTPUT_CHARS))),
            )
            for message in shown
        ],
    )
