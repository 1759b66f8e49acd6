"""A damaged session that is taken up again, and a disk that is full, as a person meets them."""

import json
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ended, Runner, running, texts
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.covers import covers

UNLIMITED = resource.RLIM_INFINITY


def cut(data: bytes) -> bytes:
    return data[: data.index(b"The second answer") + 5]


def nuls(data: bytes) -> bytes:
    return data[: data.index(b"second question")] + b"\0" * 400


def hole(data: bytes) -> bytes:
    return data.replace(b'"text":"The first answer"', b'"text":"The \x01\x02"}}')


@covers("S10.2", "D606", "H602")
@pytest.mark.parametrize("damage", [cut, nuls, hole], ids=lambda damage: damage.__name__)
async def test_a_damaged_session_goes_on_from_what_can_be_read_says_so_and_keeps_the_file(
    tmp_path: Path, damage: Callable[[bytes], bytes]
):
    async with running(tmp_path, ["The first answer", "The second answer", "The third answer"]) as runner:
        await runner.run("-p", "first question")
        (session,) = runner.sessions()
        await runner.run("-p", "second question", "--session", session["sessionId"])
        path = runner.home / "sessions" / f"{session['sessionId']}.json"
        damaged = damage(path.read_bytes())
        path.write_bytes(damaged)
        done = await runner.run("-p", "third question", "--session", session["sessionId"][:8])

    assert done.code == 0
    assert "third answer" in done.out
    assert "not everything could be read" in done.err or "could not be read" in done.err
    (kept,) = path.parent.glob(f"{path.name}.damaged-*")
    assert kept.read_bytes() == damaged
    said = [text for _, text in texts(json.loads(path.read_bytes()))]
    assert said[0] == "first question"
    assert said[-2:] == ["third question", "The third answer"]


async def limited(runner: Runner, *arguments: str, size: int, stdin: str) -> Ended:
    """The command with files that may not grow over `size`: what a full disk looks like to it."""
    process = await runner.start(*arguments, writes=True)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, UNLIMITED))
    out, err = await process.communicate(stdin.encode())
    return Ended(process.returncode or 0, out, err)


@covers("S10.1", "D605")
async def test_a_full_disk_is_said_once_and_the_answer_comes_all_the_same(tmp_path: Path):
    async with running(tmp_path, ["one", "two", "three"]) as runner:
        await runner.run("-p", "before")
        (session,) = runner.sessions()
        arguments = ("-p", "-", "--session", session["sessionId"])
        done = await limited(runner, *arguments, size=200_000, stdin="long " * 60_000)
        assert done.code == 1
        assert "two" in done.out
        assert done.err.count("cannot be written to") == 1
        assert "Not saved: 2 messages" in done.err.splitlines()[-2], "what is lost is said last"
        assert "File too large" in done.err
        assert "Traceback" not in done.err
        assert [text for _, text in texts(runner.sessions()[0])] == ["before", "one"], "what was there is whole"
        after = await runner.run("-p", "after", "--session", session["sessionId"])
    assert after.code == 0
    assert [text for _, text in texts(runner.sessions()[0])][-2:] == ["after", "three"]


@covers("S10.1", "D605")
async def test_what_a_full_disk_refused_is_written_with_the_next_turn(tmp_path: Path):
    async with running(tmp_path, ["Answer one.", "Answer two.", "Answer three."]) as runner:
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("first" + ENTER)
            await terminal.wait_for("Answer one.")
            resource.prlimit(terminal.child.pid, resource.RLIMIT_FSIZE, (1, UNLIMITED))
            terminal.type("second" + ENTER)
            await terminal.wait_for("Answer two.", "cannot be written to")
            resource.prlimit(terminal.child.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
            terminal.type("third" + ENTER)
            await terminal.wait_for("Answer three.", "Saving works again")
            assert terminal.text().count("cannot be written to") == 1
            terminal.type(CTRL_D)
            await terminal.ended()
    (session,) = runner.sessions()
    assert [text for _, text in texts(session)] == [
        "first", "Answer one.", "second", "Answer two.", "third", "Answer three.",
    ]  # fmt: skip
