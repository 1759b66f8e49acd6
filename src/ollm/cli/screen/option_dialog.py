"""The list above the input and the keys pressed at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from prompt_toolkit.application.current import get_app
from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.cells import shorten_line, truncate_cells
from ollm.cli.screen.recap import collect_turn_outputs
from ollm.domain.errors import OllmError
from ollm.domain.text import format_count
from ollm.runtime.base import Conversation
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
MIN_ABOUT_CELLS = 12
HINT = "↑↓ choose · Enter select · Esc cancel"


class OptionList:
    """`take` gets the chosen word."""

    hint = HINT
    stays_open = False  # after something was chosen
    yields_to_typing = False  # whether letters go to the input line and close it

    def __init__(
        self,
        title: str,
        options: list[str],
        current: str,
        take: Callable[[str], None] = lambda _chosen: None,
        *,
        about: Mapping[str, str] | None = None,
    ) -> None:
        self.title = title
        self.options = options
        self.current = current
        self.place = options.index(current) if current in options else 0
        self._take = take
        self._about = about or {}

    @property
    def chosen(self) -> str:
        return self.options[self.place]

    def take(self) -> None:
        self._take(self.chosen)

    def move(self, steps: int) -> None:
        self.place = max(0, min(self.place + steps, len(self.options) - 1))

    def render_lines(self, width: int) -> list[tuple[str, str]]:
        """Style and text of each line, ends of line included."""
        first = max(0, min(self.place - MAX_ROWS // 2, len(self.options) - MAX_ROWS))
        lines = [("bold", truncate_cells(f"  {self.title}", width - 1) + "\n")]
        shown = [f"{make_printable(option)}{' ✓' * (option == self.current)}" for option in self.options]
        widest = max(map(get_cwidth, shown))
        for place in range(len(shown))[first : first + MAX_ROWS]:
            style, mark = ("class:chosen", "›") if place == self.place else ("", " ")
            word = truncate_cells(f"{mark} {shown[place]}", width - 1)
            room = width - 1 - widest - len("›   ")
            told = self._about.get(self.options[place], "")
            lines.append((style, word))
            if told and room >= MIN_ABOUT_CELLS:
                lines.append(("class:hint", " " * (widest + 4 - get_cwidth(word)) + shorten_line(told, room)))
            lines.append(("", "\n"))
        return [*lines, ("class:hint", truncate_cells(f"  {self.hint}", width - 1))]


MAX_MESSAGES = 400  # that are looked through for calls


class CallList(OptionList):
    """`calls` are names and outputs, newest first. It stays until it is closed, or something is typed."""

    hint = "↑↓ choose · Enter show · Esc close"
    stays_open = yields_to_typing = True

    def __init__(self, calls: list[tuple[str, str]], show: Callable[[str, str], None]) -> None:
        super().__init__("Earlier calls", [describe_size(*call) for call in calls], "")
        self._calls = calls
        self._show = show

    def take(self) -> None:
        self._show(*self._calls[self.place])


async def load_earlier_calls(conversation: Conversation) -> list[tuple[str, str]]:
    """The calls before the last turn that made any, newest first."""
    turns = collect_turn_outputs(await conversation.history(None, MAX_MESSAGES))
    return [call for turn in reversed(turns[:-1]) for call in reversed(turn)]


def describe_size(name: str, output: str) -> str:
    lines = len(output.splitlines())
    return f"{name} · {format_count(lines, 'line')}"


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
