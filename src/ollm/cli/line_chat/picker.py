"""The sessions of a workspace as a numbered list, for terminals that can do no more and for screen readers."""

from __future__ import annotations

from ollm.cli.line_chat.line_reader import Lines
from ollm.cli.printable import printable
from ollm.cli.screen.choice import Choice, ago, fitting
from ollm.cli.sessions.session_list import ShelfLine

SHOWN = 20
QUESTION = "Number to resume, words to search, Enter for a new session, q to leave: "


async def choose_plainly(lines: list[ShelfLine], typed: Lines) -> Choice:
    """Ask until a number, nothing, or q is said; anything else narrows the list."""
    standing = [line for line in lines if not line.archived]
    shown = standing
    while True:
        print(listed(shown))
        said = await typed.ask(QUESTION)
        word = (said or "").strip()
        if said is None or word.lower() == "q":
            return Choice(action="leave")
        if not word:
            return Choice(action="new")
        if not word.isdecimal():
            shown = fitting(standing, word)
        elif 1 <= int(word) <= len(shown):
            return Choice(action="resume", session_id=shown[int(word) - 1].session_id)


def listed(lines: list[ShelfLine]) -> str:
    rows = [f"{number}. {told(line)}" for number, line in enumerate(lines[:SHOWN], start=1)]
    more = [f"and {len(lines) - SHOWN} more; words narrow the list"] if len(lines) > SHOWN else []
    return "\n".join(["Sessions of this workspace:", *(rows or ["None fits."]), *more])


def told(line: ShelfLine) -> str:
    """One session in a sentence."""
    count = "" if line.messages is None else f", {line.messages} messages"
    origin = f", from {line.origin}" if line.origin else ""
    return printable(f"{line.title or '(no title)'}, {ago(line.updated_at)}, {line.model}{count}{origin}")
