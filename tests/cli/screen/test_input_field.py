"""The input line of the real chat: its completions."""

import asyncio
import io
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from ollm.cli.screen.composing import MAX_TEXT_BYTES, Pastes, collect_mentions, run_own_command
from ollm.cli.screen.input_field import ChatCompleter, ScreenInputHistory
from tests.cli.running import running
from tests.cli.terminal import CTRL_C, CTRL_D, at_terminal


async def test_agents_are_completed(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        (runner.home / "agents").mkdir(parents=True)
        (runner.home / "agents" / "reviewer.md").write_text("Review.")
        async with at_terminal(runner, "--new") as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("ask @agent-r")
            await terminal.wait_for("agent-reviewer")
            terminal.type("\t")
            await terminal.wait_for("ask @agent-reviewer")


async def test_commands_are_completed_with_their_help(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "--new") as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("/perm")
        await terminal.wait_for("/permissions", "Show what runs without asking.")
        terminal.type(CTRL_C)
        await terminal.settle(0.3)
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0


COMMANDS = [("model", "Choose the model."), ("mode", "Choose the mode."), ("help", "List commands.")]
FILES = ["src/a.py", "two words.md", "odd@name.txt", "tab\tbed.txt"]


def complete(text: str, files: list[str] = FILES) -> list[tuple[str, int]]:
    asked: list[str] = []

    def find(typed: str) -> list[str]:
        asked.append(typed)
        return files

    completer = ChatCompleter(lambda: COMMANDS, find)
    return [(found.text, found.start_position) for found in completer.get_completions(Document(text), CompleteEvent())]


@pytest.mark.parametrize("text", ["@wo", "see @wo", "(@wo", "x\n@wo", "x\t@wo", "a@b @wo"])
def test_files_are_completed_after_an_at_that_begins_a_word(text: str) -> None:
    assert complete(text) == [
        ("src/a.py", -2),
        ('"two words.md"', -2),
        ('"odd@name.txt"', -2),
        ('"tab\tbed.txt"', -2),
    ]


def test_typed_lines_are_kept_with_their_session_and_damage_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = ScreenInputHistory(file, lambda: "s1")
    history.store_string("first\nline")
    history.store_string("second")
    with file.open("ab") as stream:
        stream.write(b'not json\n[1]\n{"text": 5}\n')

    assert list(ScreenInputHistory(file, lambda: None).load_history_strings()) == ["second", "first\nline"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_there_or_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    history = ScreenInputHistory(tmp_path / "file" / "history", lambda: "s")
    assert list(history.load_history_strings()) == []
    (tmp_path / "file").write_text("in the way")
    history.store_string("lost")
    assert list(history.load_history_strings()) == []


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
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "in.py").touch()
    text = 'see @a.txt. and @"two words.txt", @b.bin @p.png @dir me@a.txt @missing'

    found, problems = collect_mentions(text, tmp_path)

    assert [attached.name for attached in found] == ["a.txt", "two words.txt", "p.png", "dir/ (1 file)"]
    assert found[2].image is not None
    assert found[2].image.media_type == "image/png"
    assert [problem.partition(" was")[0] for problem in problems] == ["@b.bin"]
    assert (found[3].name, found[3].text) == ("dir/ (1 file)", "in.py")


def test_a_file_is_attached_once_and_a_long_one_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * MAX_TEXT_BYTES)
    (tmp_path / "b.txt").write_bytes(b"x" * (MAX_TEXT_BYTES + 1))
    (tmp_path / "c.txt").write_bytes(b"\xff")
    found, problems = collect_mentions("@a.txt @a.txt @b.txt @c.txt", tmp_path)

    assert [(each.name, len(each.text)) for each in found] == [
        ("a.txt", 200_000),
        ("b.txt (truncated)", 200_000),
        ("c.txt", 1),
    ]
    assert found[2].text == "\ufffd"
    assert problems == []


def test_what_cannot_be_attached_says_why(tmp_path: Path) -> None:
    with (tmp_path / "big.png").open("wb") as file:
        file.truncate(10_000_001)
    (tmp_path / "b.bin").write_bytes(b"a\0b")
    (tmp_path / "late.txt").write_bytes(b"a" * 8192 + b"\0")
    found, problems = collect_mentions("@big.png @b.bin @late.txt", tmp_path)

    assert [each.name for each in found] == ["late.txt"]
    assert problems == [
        "@big.png was not attached: the image is larger than 10 MB",
        "@b.bin was not attached: not a text file",
    ]
    with (tmp_path / "fits.png").open("wb") as file:
        file.truncate(10_000_000)
    assert collect_mentions("@fits.png", tmp_path)[1] == []


def watch_output(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
    return out


async def test_it_runs_in_the_workspace_and_what_it_prints_is_shown_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = watch_output(monkeypatch)
    code, kept = await run_own_command("pwd; echo wrong >&2; exit 3", tmp_path, nullcontext())

    assert code == 3
    assert (kept.name, kept.text) == ("$ pwd; echo wrong >&2; exit 3", f"{tmp_path}\nwrong\n")
    assert printed.getvalue().decode() == kept.text


async def test_one_that_goes_on_without_its_output_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch_output(monkeypatch)
    began = time.monotonic()
    code, _ = await run_own_command("exec >/dev/null 2>&1; exec sleep 500", tmp_path, nullcontext())

    assert code == -9
    assert time.monotonic() - began >= 1


async def test_one_that_is_left_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = watch_output(monkeypatch)
    work = asyncio.ensure_future(run_own_command("echo $$; exec sleep 500", tmp_path, nullcontext()))
    async with asyncio.timeout(60):
        while not printed.getvalue().endswith(b"\n"):
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.wait([work])

    assert not Path(f"/proc/{int(printed.getvalue())}").exists()
