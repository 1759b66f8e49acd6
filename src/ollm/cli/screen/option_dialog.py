"""Lists above the input: command options, earlier calls, messages to rewind to; and their keys."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.cells import shorten_line, truncate_cells, wrap_words
from ollm.cli.screen.chat_session import ConversationRunner
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
MAX_TITLE_ROWS = 10
MIN_ABOUT_CELLS = 12
HINT = "↑↓ choose · Enter select · Esc cancel"
TITLES = {"approval": "approval level"}
REWIND_SCOPES = {"both": "Conversation and files", "talk": "Conversation only", "files": "Files only"}


class OptionList:
    """A list of options. `take` receives the chosen value; `options` are labels by value; `about` describes some of
    them. `preview` shows a value above it."""

    def __init__(
        self,
        title: str,
        options: Mapping[str, str],
        take: Callable[[str], None],
        *,
        current: str = "",
        about: Mapping[str, str] | None = None,
        hint: str = HINT,
        preview: Callable[[str], StyleAndTextTuples] = lambda _: [],
    ) -> None:
        self.title = title
        self.values = list(options)
        self.labels = [f"{make_printable(label)}{' ✓' * (value == current)}" for value, label in options.items()]
        self.place = self.values.index(current) if current in options else 0
        self.take = take
        self._about = about or {}
        self._hint = hint
        self._preview = preview

    def move(self, steps: int) -> None:
        self.place = max(0, min(self.place + steps, len(self.values) - 1))

    def render_lines(self, width: int) -> StyleAndTextTuples:
        rows = [row for line in self.title.split("\n") if line.strip() for row in wrap_words(line, width - 1, "  ")]
        rows = [*rows[: MAX_TITLE_ROWS - 1], "  …"] if len(rows) > MAX_TITLE_ROWS else rows
        first = max(0, min(self.place - MAX_ROWS // 2, len(self.values) - MAX_ROWS))
        widest = max(map(get_cwidth, self.labels))
        lines = [*self._preview(self.values[self.place])]
        lines += [("bold", truncate_cells(row, width - 1) + "\n") for row in rows]
        for place in range(len(self.values))[first : first + MAX_ROWS]:
            style, mark = ("class:chosen", "›") if place == self.place else ("", " ")
            word = truncate_cells(f"{mark} {self.labels[place]}", width - 1)
            room = width - 1 - widest - len("›   ")
            about = self._about.get(self.values[place], "")
            lines.append((style, word))
            if about and room >= MIN_ABOUT_CELLS:
                lines.append(("class:hint", " " * (widest + 4 - get_cwidth(word)) + shorten_line(about, room)))
            lines.append(("", "\n"))
        return [*lines, ("class:hint", truncate_cells(f"  {self._hint}", width - 1))]


class OptionDialog:
    """Dialog for lists. `insert` puts text into the input line; `spawn` runs a choice's coroutine."""

    def __init__(
        self,
        chat: ConversationRunner,
        insert: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.list: OptionList | None = None
        self._chat = chat
        self._insert = insert
        self._spawn = spawn

    def open(self, found: OptionList) -> None:
        self.list = found
        get_app().invalidate()

    def move(self, steps: int) -> None:
        if self.list:
            self.list.move(steps)

    def choose(self, yes: bool) -> None:
        chosen, self.list = self.list, None
        if chosen and yes:
            chosen.take(chosen.values[chosen.place])

    def offer_options(self, name: str, data: dict[str, Any]) -> bool:
        """Offer the arguments of a command, each with its meaning. Returns False if there is no choice."""
        options = [str(option) for option in data["options"]]
        if len(options) > 1:
            title, labels = f"Choose the {TITLES.get(name, name)}", dict(zip(options, options, strict=True))
            self.open(
                OptionList(
                    title,
                    labels,
                    lambda chosen: self._chat.submit(f"/{name} {chosen}"),
                    current=str(data[name]),
                    about=data.get("about", {}),
                )
            )
        return len(options) > 1

    async def offer_messages(self) -> None:
        """Offer the person's messages to rewind to. Nothing changes without confirmation."""
        if not (conversation := self._chat.conversation):
            return
        reply = await conversation.command("rewind")
        if not reply.data:
            self._chat.print_aside(reply.text, "dim")
            return
        labels = {str(found["number"]): found["text"] for found in reply.data}
        self.open(
            OptionList(
                "Rewind to before which message?",
                labels,
                lambda number: self._spawn(self._chat.run_safely(self._preview_rewind(number))),
                current="",
                hint="↑↓ choose · Enter preview · Esc cancel",
            )
        )
        assert self.list
        self.list.place = len(labels) - 1

    async def _preview_rewind(self, number: str) -> None:
        assert self._chat.conversation
        reply = await self._chat.conversation.command("rewind", number)
        data = reply.data or {}
        scopes = REWIND_SCOPES if data.get("files") or data.get("skipped") else {str(data["scope"]): "Rewind"}
        self.open(
            OptionList(
                reply.text.partition("To confirm")[0].replace("`", "").strip(),
                scopes,
                lambda scope: self._spawn(self._chat.run_safely(self._rewind(number, scope))),
                hint="↑↓ choose · Enter rewind · Esc cancel",
            )
        )

    async def _rewind(self, number: str, scope: str) -> None:
        assert self._chat.conversation
        reply = await self._chat.conversation.command("rewind", f"{number} {scope} yes")
        self._chat.print_aside(f"{reply.text}\n", "yellow")
        if scope != "files":
            self._insert(str((reply.data or {}).get("text", "")))
        await self._chat.refresh()
