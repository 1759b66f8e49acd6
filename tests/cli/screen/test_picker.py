"""The list of sessions to choose from, driven by keys."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ollm.cli.screen.picker import Picker, format_preview
from ollm.cli.screen.themes import THEMES
from ollm.cli.sessions.session_list import SessionChoice, SessionListItem, filter_sessions
from ollm.domain.errors import OllmError
from tests.cli.running import running
from tests.cli.screen.inside import DrawnScreen, drawn_screen
from tests.cli.terminal import CTRL_D, ENTER, at_terminal


def test_the_preview_is_whole_lines_cut_between_words() -> None:
    text = "Last request (#3): fix the parser and then run all of the tests again\n\nAnswer: done\x1b[31m\na\nb\nc"

    lines = format_preview(text, 40)

    assert lines[0] == "  Last request (#3): fix the parser and…"
    assert lines[2:] == ["  a", "  b"]
    assert len(lines) == 4
    assert all(len(line) <= 40 for line in lines)
    assert "\x1b" not in "".join(lines)


class KeptSessions:
    """Sessions that are archived and deleted here, or cannot be."""

    def __init__(self, *, broken: bool = False) -> None:
        self.done: list[tuple[str, str]] = []
        self.broken = broken

    async def load_items(self) -> list[SessionListItem]:
        return []

    async def archive(self, session_id: str, archived: bool) -> None:
        self._note("archive" if archived else "unarchive", session_id)

    async def delete(self, session_id: str) -> None:
        self._note("delete", session_id)

    def _note(self, what: str, session_id: str) -> None:
        if self.broken:
            raise OllmError("the disk is full\x1b")
        self.done.append((what, session_id))


def item(number: int, **more: object) -> SessionListItem:
    facts = {"session_id": f"s{number:02}", "title": f"Title {number:02}", "model": "qwen3", "updated_at": 0, **more}
    return SessionListItem(**facts)  # type: ignore[arg-type]


class Picking:
    def __init__(self, picker: Picker, drawn: DrawnScreen, sessions: KeptSessions) -> None:
        self.picker, self.drawn, self.sessions = picker, drawn, sessions
        self.choice = asyncio.ensure_future(picker.choose())

    async def see(self, *wanted: str, gone: str = "\0") -> None:
        await self.drawn.wait_for(*wanted, gone=gone)

    async def press(self, *keys: str) -> None:
        """Each key by itself, so that an escape is one."""
        for key in keys:
            before = self.drawn.written.tell()
            self.drawn.type(key)
            async with asyncio.timeout(60):
                while self.drawn.written.tell() == before and not self.choice.done():
                    await asyncio.sleep(0.01)

    async def end(self) -> SessionChoice:
        return await asyncio.wait_for(self.choice, 60)


@asynccontextmanager
async def picking(
    patch: pytest.MonkeyPatch, items: list[SessionListItem], *, first: bool = True, broken: bool = False
) -> AsyncIterator[Picking]:
    async with drawn_screen(patch) as drawn:
        sessions = KeptSessions(broken=broken)
        found = Picking(Picker(items, sessions, theme=THEMES["plain"], first=first), drawn, sessions)
        try:
            await found.see("(type to search)")
            yield found
        finally:
            found.picker.leave()
            await asyncio.wait([found.choice])


MANY = [item(n) for n in range(30)]


async def test_enter_resumes_the_chosen_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with picking(monkeypatch, MANY) as found:
        await found.see("Resume a chat", "Title 00", "Title 09", "Enter resume · Ctrl-A archive · Ctrl-X delete")
        assert "Title 10" not in found.drawn.text()
        found.drawn.type("\x1b[B\x1b[B\x1b[A\r")
        assert await found.end() == SessionChoice(action="resume", session_id="s01")


async def test_typing_narrows_and_what_fits_nothing_is_a_first_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async with picking(monkeypatch, MANY) as found:
        found.drawn.type("\x1b[B17")
        await found.see("Title 17", gone="Title 01")
        assert [line.session_id for line in found.picker.find_matches()] == ["s17"]
        found.drawn.type(" nothing")
        await found.see("No matching sessions. Enter starts a new chat with this message.")
        found.drawn.type("\r")
        assert await found.end() == SessionChoice(action="new", text="17 nothing")


@pytest.mark.parametrize(
    ("key", "first", "action"),
    [
        ("\x0e", True, "new"),
        ("\x0e", False, "new"),
        ("\x1b", True, "new"),
        ("\x1b", False, "leave"),
        ("\x03", True, "leave"),
        ("\x04", False, "leave"),
    ],
)
async def test_the_ways_out(monkeypatch: pytest.MonkeyPatch, key: str, first: bool, action: str) -> None:
    async with picking(monkeypatch, MANY, first=first) as found:
        found.drawn.type(key)
        assert (await found.end()).action == action


async def test_a_signal_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with picking(monkeypatch, MANY) as found:
        found.picker.leave()
        assert (await found.end()).action == "leave"
        found.picker.leave()


async def test_tab_goes_through_the_views_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [item(1), item(2, one_shot=True), item(3, archived=True), item(4, archived=True)]
    async with picking(monkeypatch, items) as found:
        await found.see("Resume a chat", "Tab 1 chat / 1 one-shot / 2 arc", "Title 01")
        found.drawn.type("\t")
        await found.see("One-shot sessions", "Title 02", gone="Title 01")
        found.drawn.type("\t")
        await found.see("Archived sessions", "Enter resume · Ctrl-A unarchive", "Title 03")
        found.drawn.type("\t")
        await found.see("Resume a chat", "Title 01")


async def test_a_session_is_archived_and_deleted_by_a_key_pressed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async with picking(monkeypatch, [item(1), item(2), item(3)]) as found:
        found.drawn.type("\x01")
        await found.see("Title 02", gone="Title 01")
        assert found.sessions.done == [("archive", "s01")]
        found.drawn.type("\x18")
        await found.see("Press Ctrl-X again to delete it permanently; any other key cancels.")
        found.drawn.type("\x1b[B")
        await found.see("Title 03", gone="Press Ctrl-X again")
        found.drawn.type("\x18\x18")
        await found.see("Title 02", gone="Title 03")
        assert found.sessions.done == [("archive", "s01"), ("delete", "s03")]


async def test_what_cannot_be_changed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with picking(monkeypatch, [item(1)], broken=True) as found:
        found.drawn.type("\x01")
        await found.see("the disk is full\\x1b", "Title 01")


async def test_a_narrow_list_shows_its_whole_hints(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "only once")
        async with at_terminal(runner, "--new", "Why is it wrong?") as terminal:
            await terminal.wait_for("● Two.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, size=(40, 20)) as terminal:
            await terminal.wait_for("Why is it wrong?", "Tab 1 chat / 1 one-shot", "Esc new chat", "Ctrl-C quit")
            terminal.type("tell me more")
            await terminal.wait_for("No matching sessions. Enter starts a", "new chat with this message.")
            terminal.type(ENTER)
            await terminal.wait_for("● Three.")
            terminal.type(CTRL_D)
            await terminal.ended()


def item_choice(name: str, **more: str) -> SessionListItem:
    return SessionListItem(**{"session_id": name, "title": "", "model": "", "updated_at": 0, **more})  # type: ignore[arg-type]


ITEMS = [
    item_choice("aaaa1111", title="Fix the Parser", model="qwen3", last="all tests pass"),
    item_choice("bbbb2222", title="Straße planen", model="llama3", origin="/old/place"),
    item_choice("cccc3333", model="qwen3"),
]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["aaaa1111", "bbbb2222", "cccc3333"]),
        ("  ", ["aaaa1111", "bbbb2222", "cccc3333"]),
        ("PARSER fix", ["aaaa1111"]),
        ("parser llama3", []),
        ("qwen3", ["aaaa1111", "cccc3333"]),
        ("tests", ["aaaa1111"]),
        ("STRASSE", ["bbbb2222"]),
        ("/old", ["bbbb2222"]),
        ("cccc", ["cccc3333"]),
    ],
)
def test_every_typed_word_must_be_somewhere_in_the_session(typed: str, found: list[str]) -> None:
    assert [line.session_id for line in filter_sessions(ITEMS, typed)] == found
