"""The sessions of a workspace as a numbered list, for terminals that can do no more and for screen readers."""

from __future__ import annotations

from ollm.cli.line_chat.line_reader import LineReader
from ollm.cli.screen.choice import SessionChoice, filter_sessions
from ollm.cli.sessions.session_list import SessionListItem
from ollm.domain.clock import format_age
from ollm.domain.counting import format_count
from ollm.system.terminal_text import make_printable

MAX_SHOWN_SESSIONS = 20
QUESTION = "Number to resume, words to search, Enter for a new session, q to quit: "


async def choose_session(lines: list[SessionListItem], typed: LineReader) -> SessionChoice:
    """Ask until a number, nothing, or q is said; anything else narrows the list, or is the first message of a
    new session when nothing fits."""
    unarchived = [line for line in lines if not line.archived]
    shown = unarchived
    while True:
        print(format_list(shown))
        said = await typed.ask(QUESTION)
        word = (said or "").strip()
        if said is None or word.lower() == "q":
            return SessionChoice(action="leave")
        if not word:
            return SessionChoice(action="new")
        if not word.isdecimal():
            shown = filter_sessions(unarchived, word)
            if not shown:
                return SessionChoice(action="new", text=word)
        elif 1 <= int(word) <= len(shown):
            return SessionChoice(action="resume", session_id=shown[int(word) - 1].session_id)


def format_list(lines: list[SessionListItem]) -> str:
    rows = [f"{number}. {format_session(line)}" for number, line in enumerate(lines[:MAX_SHOWN_SESSIONS], start=1)]
    more = (
        [f"and {len(lines) - MAX_SHOWN_SESSIONS} more; type words to narrow the list"]
        if len(lines) > MAX_SHOWN_SESSIONS
        else []
    )
    return "\n".join(["Sessions of this workspace:", *(rows or ["No matching sessions."]), *more])


def format_session(line: SessionListItem) -> str:
    """One session in a sentence."""
    count = "" if line.messages is None else f", {format_count(line.messages, 'message')}"
    origin = f", from {line.origin}" if line.origin else ""
    return make_printable(f"{line.title or '(no title)'}, {format_age(line.updated_at)}, {line.model}{count}{origin}")
