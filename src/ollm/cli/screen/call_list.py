"""The calls of earlier turns, any of which can be shown in full."""

from __future__ import annotations

from collections.abc import Callable

from ollm.cli.screen.option_list import OptionList
from ollm.cli.screen.recap import collect_turn_outputs
from ollm.domain.counting import format_count
from ollm.runtime.base import Conversation

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
