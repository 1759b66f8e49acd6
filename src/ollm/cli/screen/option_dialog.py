"""Which list is above the input, and what becomes of the keys pressed at it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from prompt_toolkit.application.current import get_app

from ollm.cli.screen.call_list import CallList, load_earlier_calls
from ollm.cli.screen.option_list import OptionList
from ollm.domain.errors import OllmError
from ollm.runtime.base import Conversation

TITLES = {"approval": "approval level"}


class OptionDialog:
    """`submit` gets the command that a choice stands for, `insert` what is typed at a list that makes way."""

    def __init__(self, submit: Callable[[str], None], insert: Callable[[str], None]) -> None:
        self.list: OptionList | None = None
        self._submit = submit
        self._insert = insert

    def offer_options(self, name: str, options: dict[str, str], current: str) -> None:
        """The words that a command takes, each with what it means."""
        title = f"Choose the {TITLES.get(name, name)}"
        self.list = OptionList(
            title, list(options), current, lambda chosen: self._submit(f"/{name} {chosen}"), about=options
        )
        get_app().invalidate()

    async def offer_calls(self, conversation: Conversation | None, show: Callable[[str, str], None]) -> None:
        """The calls of earlier turns, where there are any."""
        with suppress(OllmError):
            if conversation and (calls := await load_earlier_calls(conversation)):
                self.list = CallList(calls, show)
                get_app().invalidate()

    def choose(self, yes: bool) -> None:
        chosen = self.list
        self.list = chosen if chosen and yes and chosen.stays_open else None
        if chosen and yes:
            chosen.take()

    def type(self, text: str) -> bool:
        """Close the list for what is typed, where it makes way; whether it did."""
        if not (self.list and self.list.yields_to_typing):
            return False
        self.list = None
        if text.isprintable() or "\n" in text:
            self._insert(text)
        return True
