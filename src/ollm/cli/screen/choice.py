"""The choice made in a list of sessions, however the list is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ollm.cli.sessions.session_list import SessionListItem
from ollm.domain.struct import Data


class SessionChoice(Data, frozen=True):
    """A session to resume, a new one (with a first message, if any), or to leave."""

    action: Literal["resume", "new", "leave"]
    session_id: str | None = None
    text: str = ""


def filter_sessions(lines: Iterable[SessionListItem], typed: str) -> list[SessionListItem]:
    """Those that have every typed word in their title, model, last words, origin or id."""
    words = typed.casefold().split()
    return [line for line in lines if all(word in build_search_text(line) for word in words)]


def build_search_text(line: SessionListItem) -> str:
    return f"{line.title} {line.model} {line.last} {line.session_id} {line.origin or ''}".casefold()
