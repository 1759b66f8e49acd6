"""What is done beside the conversation, when turns begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ollm.runtime.observers import TurnReport
    from ollm.tools.web_fetch import PageCache


class Settling:
    """A `TurnObserver`: a workspace that was moved or copied is known as such with its first turn; `settle` looks."""

    def __init__(self, settle: Callable[[], object]) -> None:
        self._settle = settle

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """Not yet: the start stays quick."""

    async def before_turn(self, text: str) -> None:
        """Not yet: the model is asked first."""

    async def after_turn(self, report: TurnReport) -> None:
        self._settle()

    async def session_closed(self, session_id: str) -> None:
        """It is known by now."""


class FreshPages:
    """A `TurnObserver`: web pages are kept for one turn and fetched anew in the next."""

    def __init__(self, pages: Callable[[], PageCache | None]) -> None:
        self._pages = pages

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """Nothing was fetched yet."""

    async def before_turn(self, text: str) -> None:
        if pages := self._pages():
            pages.forget()

    async def after_turn(self, report: TurnReport) -> None:
        """They stay until the next turn begins."""

    async def session_closed(self, session_id: str) -> None:
        """They go with the conversation."""
