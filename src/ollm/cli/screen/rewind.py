"""The person's messages to go back to. A list to choose from; nothing changes until it is confirmed."""

from __future__ import annotations

from typing import Any

from ollm.cli.options import printable
from ollm.cli.screen.cells import cut
from ollm.domain.struct import Data

ROWS = 8
HINT = "↑ ↓ choose · Enter shows what would change · Esc keeps everything"
SURE = "Enter goes back · Esc keeps everything"


class Said(Data, frozen=True):
    """A message of the person, by its number."""

    number: int
    text: str


class RewindList:
    """`warning` is what the conversation says it would do; while it stands, Enter does it."""

    def __init__(self, said: list[Said]) -> None:
        self.said = said
        self.place = len(said) - 1
        self.warning = ""

    @property
    def chosen(self) -> Said:
        return self.said[self.place]

    def move(self, steps: int) -> None:
        self.warning = ""
        self.place = max(0, min(self.place + steps, len(self.said) - 1))

    def lines(self, width: int) -> list[tuple[str, str]]:
        """Style and text of each line, ends of line included."""
        first = max(0, min(self.place - ROWS // 2, len(self.said) - ROWS))
        shown = list(enumerate(self.said))[first : first + ROWS]
        lines = [("class:hint", "Go back to before which message?\n")]
        for place, said in shown:
            style = "class:chosen" if place == self.place else ""
            lines.append((style, cut(f" #{said.number} {said.text}", width - 1) + "\n"))
        hint = SURE if self.warning else HINT
        return [*lines, ("bold", f"{self.warning}\n" if self.warning else ""), ("class:hint", hint)]


def said_in(history: list[dict[str, Any]]) -> list[Said]:
    """The messages of the person in a page of the archive."""
    return [Said(number=message["id"], text=said(message)) for message in history if message["role"] == "user"]


def said(message: dict[str, Any]) -> str:
    texts = (part.get("text", "") for part in message["parts"] if part["type"] == "text")
    return printable(" ".join(" ".join(texts).split()))[:300]
