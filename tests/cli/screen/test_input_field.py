"""The input line, completion of files, questions and choices."""

import asyncio
import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from ollm.cli.screen.composing import Pastes, collect_mentions, run_own_command
from ollm.cli.screen.input_field import ScreenInputHistory
from ollm.cli.screen.questions import (
    ConfirmationQueue,
    paint_question,
)
from ollm.config.settings import FileDiscoverySettings
from ollm.domain.events import (
    ConfirmationResolved,
)
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.cli.running import running
from tests.cli.screen.samples import PLAIN, Clock, asked, details
from tests.cli.terminal import CTRL_C, CTRL_D, DOWN, ENTER, ESCAPE, Terminal, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer


async def test_commands_files_and_agents_are_completed_without_a_gap_above_the_status_line(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        (runner.workspace / "cart.py").write_text("")
        (runner.home / "agents").mkdir(parents=True)
        (runner.home / "agents" / "reviewer.md").write_text("Review.")
        async with at_terminal(runner, "--new", size=(80, 24)) as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("/perm")
            await terminal.wait_for("/permissions", "Show what runs without asking.")
            terminal.type(CTRL_C + "ask @agent-r")
            await terminal.wait_for("agent-reviewer", gone="/permissions")
            terminal.type("\t")
            await terminal.wait_for("ask @agent-reviewer")
            terminal.type(CTRL_C + "@ca")
            await terminal.wait_for("@ca", " cart.py", gone="reviewer")
            await terminal.settle(0.3)
            lines = terminal.screen().splitlines()
            place = next(place for place, line in enumerate(lines) if line.strip() == "cart.py")
            assert "code·ask" in lines[place + 1]
            terminal.type(CTRL_C + CTRL_D)
            await terminal.ended()


def read_grounds(terminal: Terminal) -> set[str]:
    return {cell.bg for row in terminal.paper.buffer.values() for cell in row.values()}


async def test_colours_and_keys_are_chosen_in_the_chat_and_kept(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        async with at_terminal(runner, size=(80, 24), COLORTERM="truecolor") as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("?")
            await terminal.wait_for("suspend to the shell")
            terminal.type("hi")
            await terminal.wait_for("› hi")
            terminal.type(CTRL_C + "/the")
            await terminal.wait_for("Choose the colours of the screen.")
            terminal.type("\t")
            await terminal.wait_for("› /theme")
            terminal.type(ENTER)
            await terminal.wait_for("Choose the colours", "return prices")
            grounds = read_grounds(terminal)
            terminal.type("jj")
            assert await terminal.wait_until(lambda: read_grounds(terminal) != grounds)
            terminal.type(ENTER)
            await terminal.wait_for("screen.theme is light now.")
            terminal.type("/vim" + ENTER)
            await terminal.wait_for("screen.keys is vi now.")
            terminal.type("abc" + ESCAPE)
            await terminal.settle(1.5)
            terminal.type("0x")
            await terminal.wait_for("› bc")
            terminal.type(CTRL_C)
            await terminal.wait_for(gone="› bc")
            terminal.type("i/vim" + ENTER)
            await terminal.wait_for("screen.keys is emacs now.")
            terminal.type(CTRL_D)
            await terminal.ended()
    assert (runner.home / "config.yaml").read_text() == "screen:\n  keys: emacs\n  theme: light\n"


async def test_a_directory_is_added_to_a_chat_that_goes_on(tmp_path: Path) -> None:
    other = tmp_path / "library"
    write = Answer(calls=[("write_file", {"path": str(other / "new.txt"), "content": "there"})])
    seen = Answer(calls=[("shell", {"command": f"touch {other}/made.txt"})])
    async with running(
        tmp_path, ["Hello.", write, "Refused.", write, "Done.", seen, "Made.", write, "Again."]
    ) as runner:
        other.mkdir()
        async with at_terminal(runner, "--approval", "yolo", "hi there", size=(90, 60)) as terminal:
            await terminal.wait_for("Hello.")
            terminal.type("/approval read-only" + ENTER)
            await terminal.wait_for("read-only")
            terminal.type("!echo keepme" + ENTER)
            await terminal.wait_for("your next message")
            terminal.type("/model set temperature 0.25" + ENTER)
            terminal.type("/add-dir ../library" + ENTER)
            await terminal.wait_for("Tools may use")
            terminal.type("write it" + ENTER)
            await terminal.wait_for("Refused.")
            assert not (other / "new.txt").exists()
            terminal.type("/approval accept-edits" + ENTER)
            terminal.type("write it now" + ENTER)
            terminal.type("run it" + ENTER)
            await terminal.wait_for("[y] yes")
            terminal.type("y")
            await terminal.wait_for("Made.")
            (other / "new.txt").unlink()
            terminal.type("/new" + ENTER)
            await terminal.wait_for("New session.")
            terminal.type("once more" + ENTER)
            await terminal.wait_for("Again.")
            terminal.type(CTRL_D)
            await terminal.ended()
    assert (other / "new.txt").read_text() == "there"
    assert (other / "made.txt").exists()
    assert "keepme" in str(runner.server.chats[1])
    assert runner.server.chats[1]["temperature"] == 0.25
    assert len(runner.sessions()) == 2


@pytest.fixture
def discovery(tmp_path: Path) -> Iterator[FileDiscoveryService]:
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    yield service
    service.close()


COMMANDS = [("model", "Choose the model."), ("mode", "Choose the mode."), ("help", "List commands.")]

FILES = ["src/a.py", "two words.md", "odd@name.txt", "tab\tbed.txt"]


def test_typed_lines_are_kept_with_their_session_and_damage_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = ScreenInputHistory(file, lambda: "s1")
    history.store_string("first\nline")
    history.store_string("second")
    with file.open("ab") as stream:
        stream.write(b'not json\n[1]\n{"text": 5}\n')

    assert list(ScreenInputHistory(file, lambda: None).load_history_strings()) == ["second", "first\nline"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_paste_is_folded_and_sent_whole_even_when_it_holds_a_chip() -> None:
    pastes = Pastes()
    short = "one\ntwo"
    first = pastes.fold("[pasted 9 lines #2]\n" * 9)
    second = pastes.fold("x\n" * 9)

    assert pastes.fold(short) == short
    whole = "a " + "[pasted 9 lines #2]\n" * 9 + " b " + "x\n" * 9
    assert pastes.unfold(f"a {first} b {second}") == whole


def test_files_are_attached_by_name_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "two words.txt").write_text("spaced")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "in.py").touch()
    text = 'see @a.txt. and @"two words.txt", @b.bin @p.png @dir me@a.txt @missing'

    found, problems = collect_mentions(text, tmp_path)

    assert [attached.name for attached in found] == ["a.txt", "two words.txt", "p.png", "dir/ (1 file)"]
    assert found[2].image is not None
    assert found[2].image.media_type == "image/png"
    assert [problem.partition(" was")[0] for problem in problems] == ["@b.bin"]
    assert (found[3].name, found[3].text) == ("dir/ (1 file)", "in.py")


def test_what_cannot_be_attached_says_why(tmp_path: Path) -> None:
    for name, size in (("big.png", 10_000_001), ("fits.png", 10_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")
            file.truncate(size)
    (tmp_path / "b.bin").write_bytes(b"a\0b")
    (tmp_path / "late.txt").write_bytes(b"a" * 8192 + b"\0")
    found, problems = collect_mentions("@big.png @b.bin @late.txt", tmp_path)

    assert [each.name for each in found] == ["late.txt"]
    assert problems == [
        "@big.png was not attached: the image is larger than 10 MB",
        "@b.bin was not attached: not a text file",
    ]
    assert collect_mentions("@fits.png", tmp_path)[1] == []


def watch_output(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
    return out


async def test_one_that_is_left_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = watch_output(monkeypatch)
    work = asyncio.ensure_future(run_own_command("echo $$; exec sleep 500", tmp_path, nullcontext()))
    async with asyncio.timeout(60):
        while not printed.getvalue().endswith(b"\n"):
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.wait([work])

    assert not Path(f"/proc/{int(printed.getvalue())}").exists()


async def test_levels_are_chosen_from_a_list_and_by_a_key(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "--new") as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("/approval" + ENTER)
        await terminal.wait_for("Choose the approval level", "› ask ✓", "asks only before it touches protected files")
        terminal.type(DOWN + ENTER)
        await terminal.wait_for("Approval: accept-edits", "code·accept-edits", gone="Choose the approval")
        terminal.type("\x1b[Z")
        await terminal.wait_for("plan·read-only")
        terminal.type("\x1b[Z")
        await terminal.wait_for("code·ask")
        terminal.type("/approval yolo" + ENTER)
        await terminal.wait_for("Everything except protected files now runs without asking")
        terminal.type("/modle" + ENTER)
        await terminal.wait_for("Did you mean /model?")
        terminal.type(CTRL_C)
        await terminal.wait_for("Press Ctrl-C again to quit")
        terminal.type("exit" + ENTER)
        assert await terminal.ended() == 0
        terminal.type(CTRL_D)


@covers("T8.5", "T8.6")
def test_questions_wait_in_order_and_take_keys_only_after_a_quiet_moment() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", grant="shell:ls"))
    questions.handle_event(asked("b", locked=True, grant="shell:rm"))
    assert not questions.takes_keys, "somebody may be in mid-sentence"
    clock.time += 0.3
    questions.note_typing()
    clock.time += 0.3
    assert not questions.takes_keys
    clock.time += 0.2
    assert questions.takes_keys
    assert read(questions) == (
        "› [y] yes    [a] always …    [n] no, because …\n  Tab and Enter, or a letter · Esc stops · 1 more"
    )
    questions.unfold("a")
    assert read(questions).endswith(
        "  [s] yes, for this session (shell:ls)\n› [a] always in this workspace (shell:ls)\n"
        "  [e] always in every workspace (shell:ls)\n  ↑↓ choose · Enter confirms · Esc back · 1 more"
    )

    questions.handle_event(ConfirmationResolved(correlation_id="a", outcome="approved"))
    assert not questions.takes_keys, "the next question needs its own moment"
    clock.time += 1
    assert list(questions.choices) == ["y", "n"], "what is protected is asked about every time"

    questions.handle_event(ConfirmationResolved(correlation_id="b", outcome="cancelled"))
    assert questions.current is None
    assert read(questions) == ""


def read(questions: ConfirmationQueue) -> str:
    return "".join(text for _, text in questions.render_lines(100))


def test_a_question_with_a_long_change_is_named_again_below_it() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", description="Create b.txt (60 lines)", diff="+x\n" * 60))
    clock.time += 1

    assert read(questions).startswith("  Create b.txt (60 lines)?\n› [y] yes")


def test_a_question_cannot_drive_the_terminal() -> None:
    text = paint_question(details(command="echo \x1b[2J; rm\u202e", description="Run\r\x1b]0;x\x07"), PLAIN)

    assert "\x1b" not in text
    assert "\r" not in text
    assert "\u202e" not in text
