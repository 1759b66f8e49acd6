"""The person's messages to go back to. A list to choose from; nothing changes until it is confirmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ollm.cli.screen.cells import truncate_cells
from ollm.cli.screen.paint import Painter
from ollm.domain.errors import OllmError
from ollm.domain.struct import Data
from ollm.runtime.base import Conversation, Status
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
MAX_PREVIEW_ROWS = 10
SCOPES = {"both": "Talk and files", "talk": "Talk only", "files": "Files only"}
HINT = "↑↓ choose · Enter preview · Esc cancel"
CONFIRM_HINT = "Enter rewind · Esc cancel"
CHOICE_HINT = "↑↓ choose · Enter rewind · Esc cancel"


class RewindTarget(Data, frozen=True):
    """A message of the person, by its number."""

    number: int
    text: str


class RewindList:
    """`warning` is what the conversation says it would do; while it is shown, Enter does it. Where files would go back
    too, `scopes` are what can be chosen from then."""

    def __init__(self, said: list[RewindTarget]) -> None:
        self.said = said
        self.place = len(said) - 1
        self.warning = ""
        self.scopes: tuple[str, ...] = ()
        self.scope_place = 0
        self.only_scope = ""  # what goes back where there is nothing to choose

    @property
    def scope(self) -> str:
        """Scope of the rewind; empty if there is nothing to choose."""
        return self.scopes[self.scope_place] if self.scopes else ""

    @property
    def chosen(self) -> RewindTarget:
        return self.said[self.place]

    def move(self, steps: int) -> None:
        if self.warning and self.scopes:
            self.scope_place = max(0, min(self.scope_place + steps, len(self.scopes) - 1))
            return
        self.warning = ""
        self.place = max(0, min(self.place + steps, len(self.said) - 1))

    def render_lines(self, width: int) -> list[tuple[str, str]]:
        """Style and text of each line, ends of line included."""
        first = max(0, min(self.place - MAX_ROWS // 2, len(self.said) - MAX_ROWS))
        shown = list(enumerate(self.said))[first : first + MAX_ROWS]
        lines = [("class:hint", "Rewind to before which message?\n")]
        for place, said in shown:
            style = "class:chosen" if place == self.place else ""
            lines.append((style, truncate_cells(f" #{said.number} {said.text}", width - 1) + "\n"))
        if self.warning and self.scopes:
            return [*lines, *self._render_scopes(width), ("class:hint", CHOICE_HINT)]
        hint = CONFIRM_HINT if self.warning else HINT
        return [*lines, ("bold", f"{self.warning}\n" if self.warning else ""), ("class:hint", hint)]

    def _render_scopes(self, width: int) -> list[tuple[str, str]]:
        rows = [row for row in self.warning.split("\n") if row.strip()]
        if len(rows) > MAX_PREVIEW_ROWS:
            rows = [*rows[: MAX_PREVIEW_ROWS - 1], "…"]
        said = [("bold", truncate_cells(row.replace("`", ""), width - 1) + "\n") for row in rows]
        choices = [
            ("class:chosen" if place == self.scope_place else "", f" {SCOPES[scope]}\n")
            for place, scope in enumerate(self.scopes)
        ]
        return [*said, *choices]


class RewindDisplay(Protocol):
    """The part of the screen that a rewind uses."""

    painter: Painter

    def print(self, text: str) -> None: ...

    def refresh(self, status: Status) -> None: ...


class RewindDialog:
    """Opens the list and does what was chosen; `insert` puts the message back into the input."""

    def __init__(
        self, place: RewindDisplay, conversation: Callable[[], Conversation | None], insert: Callable[[str], None]
    ) -> None:
        self.list: RewindList | None = None
        self._place = place
        self._conversation = conversation
        self._insert = insert

    async def open(self) -> None:
        conversation = self._conversation()
        if conversation is None:
            return
        if said := collect_user_messages(await conversation.history(limit=1000)):
            self.list = RewindList(said)
        else:
            self._print_aside("Nothing to rewind yet.", "dim")
        self._place.refresh(await conversation.status())

    async def confirm(self) -> None:
        """Say what would change; the second time, do it."""
        conversation, chosen = self._conversation(), self.list
        if conversation is None or chosen is None:
            return
        sure = f" {chosen.scope or chosen.only_scope} yes" if chosen.warning else ""
        try:
            reply = await conversation.command("rewind", f"{chosen.chosen.number}{sure}")
        except OllmError as error:
            self.list = None
            self._print_aside(str(error), "red")
            return
        if sure:
            self.list = None
            self._print_aside(reply.text, "yellow")
            if chosen.scope != "files":
                self._insert(str((reply.data or {}).get("text", "")))
        else:
            data = reply.data or {}
            chosen.warning = reply.text.partition("To confirm")[0].strip()
            chosen.scopes = tuple(SCOPES) if data.get("files") or data.get("skipped") else ()
            chosen.only_scope = str(data.get("scope", ""))
        self._place.refresh(await conversation.status())

    def _print_aside(self, text: str, style: str) -> None:
        self._place.print(self._place.painter.paint_aside(text, style))


def collect_user_messages(history: list[dict[str, Any]]) -> list[RewindTarget]:
    """The messages of the person in a page of the archive."""
    return [
        RewindTarget(number=message["id"], text=extract_text(message))
        for message in history
        if message["role"] == "user"
    ]


def extract_text(message: dict[str, Any]) -> str:
    texts = (part.get("text", "") for part in message["parts"] if part["type"] == "text")
    return make_printable(" ".join(" ".join(texts).split()))[:300]
