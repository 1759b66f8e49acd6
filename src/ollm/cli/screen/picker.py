"""The picker of a workspace's sessions: type to filter, arrows to move, Enter to resume, and more keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal, get_args

from msgspec.structs import replace
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, Dimension, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from ollm.cli.screen.application import open_output
from ollm.cli.screen.cells import pad_cells, shorten_line, wrap_choices
from ollm.cli.screen.themes import ScreenTheme
from ollm.cli.sessions.session_list import SessionList, SessionListItem, filter_sessions, flatten_markdown
from ollm.domain.clock import format_age
from ollm.domain.errors import OllmError
from ollm.domain.text import format_count
from ollm.runtime.base import CommandReply
from ollm.system.terminal_text import make_printable

MAX_ROWS = 10
PREVIEW_LINES = 4
NARROW_CELLS = 60  # A narrower terminal shows only title and time.
AGE_CELLS = 10
PREVIEW_MIN_LINES = 14
View = Literal["chats", "one-shot", "archived"]
DELETE_WARNING = "Press Ctrl-X again to delete it permanently; any other key cancels."


class Picker:
    """Session picker with up to three views: chats, one-shot sessions, archived ones. Deleting needs its key twice.

    `first` means that no chat is open yet: Esc starts a new one, and typed text can be its first message. That choice
    comes before the matching sessions, unless the person asked for the list (`searching`).
    """

    def __init__(
        self,
        lines: list[SessionListItem],
        sessions: SessionList,
        *,
        theme: ScreenTheme,
        first: bool = True,
        searching: bool = False,
    ) -> None:
        self._lines = lines
        self._first = first
        self._searching = searching
        self._sessions = sessions
        self._place = 0
        self._view: View = self._list_views()[0]
        self._doomed: str | None = None
        self._problem = ""
        self._found: tuple[tuple[str, str, list[SessionListItem]], list[SessionListItem]] | None = None
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._reset_selection())
        self._app: Application[CommandReply] = Application(
            layout=self._build_layout(),
            key_bindings=self._build_keys(),
            style=Style.from_dict(theme.toolkit),
            output=open_output(),
            color_depth=None if theme.colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
        )
        self._app.ttimeoutlen = 0.05
        self._app.timeoutlen = 0.25

    async def choose(self) -> CommandReply:
        """Return the chosen session, a new one with a first message as `text` or a draft as `argument`, or exit."""
        return await self._app.run_async(handle_sigint=False, set_exception_handler=False)

    def leave(self) -> None:
        if self._app.is_running:
            self._app.exit(result=CommandReply(follow_up="exit"))

    def find_matches(self) -> list[SessionListItem]:
        """Find the matching sessions, cached until the filter, the view or the list changes."""
        asked = (self._filter.text, self._view, self._lines)
        if self._found is None or self._found[0] != asked:
            shown = (line for line in self._lines if get_view(line) == self._view)
            self._found = asked, filter_sessions(shown, self._filter.text)
        return self._found[1]

    def _build_layout(self) -> Layout:
        field = Window(BufferControl(self._filter, input_processors=[BeforeInput(self._render_title)]), height=1)
        listed = Window(FormattedTextControl(self._render_list), height=self._get_list_height, dont_extend_height=True)
        preview = Window(FormattedTextControl(self._render_preview), height=Dimension(max=PREVIEW_LINES))
        is_tall = Condition(lambda: self._app.output.get_size().rows >= PREVIEW_MIN_LINES)
        hint = Window(FormattedTextControl(self._render_hint), height=Dimension(min=1, max=4), wrap_lines=True)
        return Layout(HSplit([field, listed, ConditionalContainer(preview, is_tall), hint]), focused_element=field)

    def _count_rows(self) -> int:
        return max(1, min(MAX_ROWS, self._app.output.get_size().rows - 7))

    def _get_list_height(self) -> Dimension:
        longest = max(Counter(map(get_view, self._lines)).values(), default=0)
        return Dimension.exact(min(self._count_rows(), longest + self._first))

    @property
    def _message(self) -> str:
        """Typed text as the first message of a new chat, or "" if a chat is already open."""
        return self._filter.text.strip() if self._first else ""

    def _list_rows(self) -> list[SessionListItem | None]:
        return [*([None] if self._message else []), *self.find_matches()]

    def _render_list(self) -> StyleAndTextTuples:
        found = self._list_rows()
        rows = self._count_rows()
        first = max(0, min(self._place - rows // 2, len(found) - rows))
        width = self._app.output.get_size().columns - 1
        lines: StyleAndTextTuples = []
        for place, line in enumerate(found[first : first + rows], start=first):
            style = "class:chosen" if place == self._place else ""
            new = shorten_line(f" New chat: {self._message}", width)
            lines.append((style, pad_cells(format_row(line, width) if line else new, width)))
            lines.append(("", "\n"))
        return lines if self.find_matches() else [*lines, ("class:hint", "No matching sessions.")]

    def _render_title(self) -> StyleAndTextTuples:
        names = {"chats": "Resume a chat", "one-shot": "One-shot sessions", "archived": "Archived sessions"}
        return [("bold", names[self._view]), ("class:hint", " (type to search) " if not self._filter.text else " ")]

    def _list_views(self) -> list[View]:
        found = {get_view(line) for line in self._lines}
        return [view for view in get_args(View) if view in found] or ["chats"]

    def _render_preview(self) -> StyleAndTextTuples:
        chosen = self._get_selected()
        width = self._app.output.get_size().columns - 1
        return [("class:hint", "\n".join(format_preview(chosen.preview, width)))] if chosen else []

    def _render_hint(self) -> StyleAndTextTuples:
        if self._doomed or self._problem:
            return [("bold", DELETE_WARNING if self._doomed else self._problem)]
        counts = Counter(map(get_view, self._lines))
        others = [
            format_count(counts[view], "chat") if view == "chats" else f"{counts[view]:,} {view}"
            for view in self._list_views()
        ]
        tab = f"Tab {' / '.join(others)}" if len(others) > 1 else ""
        chosen = f"Enter resume · Ctrl-A {'unarchive' if self._view == 'archived' else 'archive'} · Ctrl-X delete"
        if self._message and self._get_selected() is None:
            chosen = "Enter send it in a new chat"
        ending = "Esc new chat · Ctrl-C quit" if self._first else "Ctrl-N new chat · Esc back"
        width = self._app.output.get_size().columns - 1
        return [("class:hint", wrap_choices(" · ".join(filter(None, (chosen, tab, ending))), width))]

    def _get_selected(self) -> SessionListItem | None:
        found = self._list_rows()
        return found[self._place] if self._place < len(found) else None

    def _reset_selection(self) -> None:
        self._doomed, self._problem = None, ""
        self._place = int(self._searching and bool(self._message and self.find_matches()))

    def _move(self, steps: int) -> None:
        self._doomed = None
        self._place = max(0, min(self._place + steps, len(self._list_rows()) - 1))

    def _build_keys(self) -> KeyBindings:
        keys = KeyBindings()
        actions: dict[str, Callable[[], None]] = {
            "up": lambda: self._move(-1),
            "c-p": lambda: self._move(-1),
            "down": lambda: self._move(1),
            "pageup": lambda: self._move(-MAX_ROWS),
            "pagedown": lambda: self._move(MAX_ROWS),
            "enter": self._take_selected,
            "c-n": self._start_new,
            "escape": self._start_new if self._first else self.leave,
            "c-c": self.leave,
            "c-d": self.leave,
            "tab": self._show_next_view,
            "c-a": self._archive_selected,
            "c-x": self._delete_selected,
        }
        for key, run in actions.items():  # Otherwise prompt_toolkit waits for its own Ctrl-X Ctrl-X.
            keys.add(key, eager=key == "c-x")(lambda _event, run=run: self._act(run))
        return keys

    def _act(self, run: Callable[[], None]) -> None:
        self._problem = ""
        run()

    def _start_new(self) -> None:
        self._app.exit(result=CommandReply(follow_up="new-session", argument=self._message))

    def _take_selected(self) -> None:
        if chosen := self._get_selected():
            self._app.exit(result=CommandReply(follow_up="open-session", argument=chosen.session_id))
        elif self._message:
            self._app.exit(result=CommandReply(follow_up="new-session", text=self._message))

    def _show_next_view(self) -> None:
        views = self._list_views()
        self._view = views[(views.index(self._view) + 1) % len(views)] if self._view in views else views[0]
        self._reset_selection()

    def _archive_selected(self) -> None:
        if chosen := self._get_selected():
            turned = replace(chosen, archived=not chosen.archived)
            self._change(chosen, [turned], lambda: self._sessions.archive(chosen.session_id, turned.archived))

    def _delete_selected(self) -> None:
        chosen = self._get_selected()
        if chosen and self._doomed == chosen.session_id:
            self._change(chosen, [], lambda: self._sessions.delete(chosen.session_id))
        elif chosen:
            self._doomed = chosen.session_id

    def _change(self, line: SessionListItem, after: list[SessionListItem], work: Callable[[], None]) -> None:
        """Change a session, and list what is there afterwards in its place."""
        try:
            work()
            self._lines = [one for found in self._lines for one in (after if found == line else [found])]
        except OllmError as error:
            self._problem = make_printable(error.message)
        self._move(0)


def get_view(line: SessionListItem) -> View:
    return "archived" if line.archived else "one-shot" if line.one_shot else "chats"


def format_preview(text: str, width: int) -> list[str]:
    texts = (line.strip() for line in text.splitlines())
    lines = [flatten_markdown(make_printable(line)) for line in texts if line and not line.endswith(":")]
    return [f"  {shorten_line(line, width - 2)}" for line in lines[:PREVIEW_LINES]]


def format_row(line: SessionListItem, width: int) -> str:
    count = "" if line.messages is None else format_count(line.messages, "msg")
    last = line.origin or line.last
    title, age = make_printable(line.title or "(no title)"), format_age(line.updated_at)
    if width < NARROW_CELLS:
        title_cells = max(10, width - AGE_CELLS - 2)
        return f" {pad_cells(shorten_line(title, title_cells), title_cells)} {age:>{AGE_CELLS}}"
    title_cells = max(16, min(40, width // 3))
    title = pad_cells(shorten_line(title, title_cells), title_cells)
    model = pad_cells(shorten_line(make_printable(line.model), title_cells // 2), title_cells // 2)
    return f" {title} {age:>{AGE_CELLS}}  {model} {count:>9}  {make_printable(last)}"
