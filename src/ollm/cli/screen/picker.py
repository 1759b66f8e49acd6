"""The sessions of a workspace to choose from: type to filter, arrows to move, Enter to resume, and a few more keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style

from ollm.cli.options import printable
from ollm.domain.struct import Data
from ollm.domain.workspace import ChatSession

ROWS = 10
STYLE = Style.from_dict({"chosen": "reverse", "hint": "ansibrightblack"})
HINT = "Enter resume · Ctrl-N new · Ctrl-A archive · Ctrl-X delete · Esc leave"


class Choice(Data, frozen=True):
    """What the person decided: a session to resume, a new one, or to leave."""

    action: Literal["resume", "new", "leave"]
    session_id: str | None = None


class Picker:
    """`archive` and `delete` do what their keys say; deleting asks for the key twice."""

    def __init__(
        self,
        sessions: Sequence[ChatSession],
        archive: Callable[[str], None],
        delete: Callable[[str], None],
        *,
        colour: bool,
    ) -> None:
        self._sessions = list(sessions)
        self._archive = archive
        self._delete = delete
        self._place = 0
        self._doomed: str | None = None
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._to_top())
        self._app: Application[Choice] = Application(
            layout=self._layout(), key_bindings=self._keys(), style=STYLE if colour else None, erase_when_done=True
        )
        self._app.ttimeoutlen = 0.05

    async def choose(self) -> Choice:
        return await self._app.run_async()

    def shown(self) -> list[ChatSession]:
        """Those that have every typed word in their title, model or last words."""
        typed = self._filter.text.casefold().split()
        return [s for s in self._sessions if all(word in searchable(s) for word in typed)]

    def _layout(self) -> Layout:
        field = Window(BufferControl(self._filter, input_processors=[BeforeInput("Resume which session? ")]), height=1)
        listed = Window(FormattedTextControl(self._list), height=ROWS, dont_extend_height=True)
        preview = Window(FormattedTextControl(self._preview), height=4, wrap_lines=True, style="class:hint")
        hint = Window(FormattedTextControl(self._hint), height=1, style="class:hint")
        return Layout(HSplit([field, listed, preview, hint]), focused_element=field)

    def _list(self) -> StyleAndTextTuples:
        sessions = self.shown()
        first = max(0, min(self._place - ROWS // 2, len(sessions) - ROWS))
        width = self._app.output.get_size().columns - 1
        lines: StyleAndTextTuples = []
        for place, session in enumerate(sessions[first : first + ROWS], start=first):
            style = "class:chosen" if place == self._place else ""
            lines.append((style, row(session)[:width].ljust(width)))
            lines.append(("", "\n"))
        return lines or [("class:hint", "No session fits.")]

    def _preview(self) -> StyleAndTextTuples:
        session = self._chosen()
        return [("class:hint", printable(session.summary.replace("\n", " "))[:600])] if session else []

    def _hint(self) -> StyleAndTextTuples:
        if self._doomed:
            return [("bold", "Ctrl-X again deletes it for good, with every trace of it; any other key keeps it.")]
        return [("class:hint", HINT)]

    def _chosen(self) -> ChatSession | None:
        sessions = self.shown()
        return sessions[self._place] if self._place < len(sessions) else None

    def _to_top(self) -> None:
        self._place, self._doomed = 0, None

    def _move(self, steps: int) -> None:
        self._doomed = None
        self._place = max(0, min(self._place + steps, len(self.shown()) - 1))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, steps in (("up", -1), ("down", 1), ("pageup", -ROWS), ("pagedown", ROWS), ("c-p", -1)):

            @keys.add(key)
            def _go(_event: KeyPressEvent, steps: int = steps) -> None:
                self._move(steps)

        @keys.add("enter")
        def _resume(event: KeyPressEvent) -> None:
            if chosen := self._chosen():
                event.app.exit(result=Choice(action="resume", session_id=chosen.session_id))

        @keys.add("c-n")
        def _new(event: KeyPressEvent) -> None:
            event.app.exit(result=Choice(action="new"))

        @keys.add("escape")
        @keys.add("c-c")
        @keys.add("c-d")
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(result=Choice(action="leave"))

        @keys.add("c-a")
        def _archive(_event: KeyPressEvent) -> None:
            self._remove(self._archive)

        @keys.add("c-x")
        def _delete(_event: KeyPressEvent) -> None:
            chosen = self._chosen()
            if chosen and self._doomed == chosen.session_id:
                self._remove(self._delete)
            elif chosen:
                self._doomed = chosen.session_id

        return keys

    def _remove(self, how: Callable[[str], None]) -> None:
        if chosen := self._chosen():
            how(chosen.session_id)
            self._sessions.remove(chosen)
            self._move(0)


def searchable(session: ChatSession) -> str:
    return f"{session.title} {session.model} {last_line(session)} {session.session_id}".casefold()


def row(session: ChatSession) -> str:
    """Title, when, model, how much, and the last words."""
    count = len(session.recent_messages)
    title = printable(session.title or "(no title)")[:40]
    return f" {title:40}  {ago(session.updated_at):>8}  {session.model[:18]:18}  {count:3} msgs  {last_line(session)}"


def last_line(session: ChatSession) -> str:
    said = [str(message.get("content") or "") for message in session.recent_messages if message.get("content")]
    return printable(" ".join(said[-1].split()))[:60] if said else ""


def ago(moment: int) -> str:
    seconds = max(0, int(time.time()) - moment // 1000)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"
