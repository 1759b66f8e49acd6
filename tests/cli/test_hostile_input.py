"""Files and servers that never end, or are nested without end: the command stops, and says why."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, ollm
from tests.cli.running import Runner, running
from tests.servers.answers import Answer
from tests.servers.handled import serve_with

DELTA = {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": "x" * 20_000}}]}}]}
PIECES = {
    "comments": b": ping\n\n" * 10,
    "arguments": (b"data: " + json.dumps(DELTA).encode() + b"\n\n") * 20,
    "nothing": b'data: {"choices":[{"delta":{}}]}\n\n',
}


@asynccontextmanager
async def endless_server(piece: bytes) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = b'{"data":[{"id":"scripted"}]}'
        if not head.startswith(b"POST"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            while True:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.005)
        except ConnectionError:
            writer.close()

    async with serve_with(serve) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("kind", PIECES)
async def test_an_answer_that_never_ends_is_given_up(tmp_path: Path, kind: str) -> None:
    home, workspace = tmp_path / "home", tmp_path / "work"
    workspace.mkdir()
    home.mkdir()
    (home / "config.yaml").write_text("provider: {timeouts: {firstToken: 3, stall: 3}}\n")
    async with endless_server(PIECES[kind]) as url:
        done = await asyncio.to_thread(
            ollm, "-p", "go", home=home, cwd=workspace, OLLM_BASE_URL=url, OLLM_PROVIDER="openai", OLLM_MODEL="scripted"
        )

    assert done.returncode in (4, 124)
    assert "Traceback" not in done.stderr
    assert "ollm: " in done.stderr


async def test_arguments_nested_without_end_are_a_mistake_of_the_model(tmp_path: Path) -> None:
    deep = '{"path":' + "[" * 100_000 + "]" * 100_000 + "}"
    async with running(tmp_path, [Answer(calls=[("read_file", deep)]), "I see."]) as runner:
        done = await runner.run("-p", "go", "-o", "json")

    answer = json.loads(done.out)
    assert (answer["text"], answer["toolCalls"][0]["status"]) == ("I see.", "failed")


CHUNKS = (rb'data: {"choices":[{"delta":{"content":"half \ud83d"},"finish_reason":"stop"}]}', b"data: [DONE]", b"")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "call",
    [
        Answer(calls=[("write_file", r'{"path": "a.txt", "content": "half \ud83d, whole \ud83d\ude00"}')]),
        Answer(calls=[("write_file", r'{"path": "a.txt", content: "half \ud83d, whole \ud83d\ude00"')]),
        Answer(
            text="```json\n"
            r'{"name": "write_file", "arguments": {"path": "a.txt", "content": '
            r'"half \ud83d, whole \ud83d\ude00"}}'
            "\n```"
        ),
    ],
    ids=["call", "broken call", "call in text"],
)
async def test_half_a_character_in_an_answer_is_replaced(tmp_path: Path, call: Answer) -> None:
    async with running(tmp_path, [call, Answer(raw=HEAD + b"\n\n".join(CHUNKS))]) as runner:
        done = await runner.run("-p", "go", "--yes", OLLM_CALL_FORM="text")

        assert (done.code, done.out) == (0, "half \ufffd\n")
        assert (runner.workspace / "a.txt").read_text() == "half \ufffd, whole \U0001f600"


@pytest.mark.parametrize("kind", ["sparse", "link"])
async def test_instructions_without_end_do_not_hold_the_start_up(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        make_endless(runner, kind)
        began = time.monotonic()
        done = await runner.run("-p", "go")

    assert done.code == 0
    assert time.monotonic() - began < 30


def make_endless(runner: Runner, kind: str) -> None:
    file = runner.workspace / "AGENTS.md"
    if kind == "link":
        file.symlink_to("/proc/self/pagemap")
        return
    with file.open("wb") as stream:
        stream.truncate(50 << 30)


def test_a_hole_of_50_gigabytes_is_not_searched(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as stream:
        stream.truncate(50 << 30)
    (tmp_path / "note").write_text("needle\n")
    arguments = [json.dumps({"pattern": "needle", **more}) for more in ({}, {"path": "hole"})]
    home = tmp_path.parent / f"{tmp_path.name}-home"

    began = time.monotonic()
    found, refused = (ollm("tools", "run", "grep", "--args", one, home=home, cwd=tmp_path) for one in arguments)
    assert time.monotonic() - began < 30
    assert "note" in found.stdout
    assert "larger than" in refused.stdout + refused.stderr


def measure_output(home: Path, command: str) -> float:
    """Processor seconds of the program and all it started, for a command that prints a lot."""
    program = (
        "import resource,subprocess,sys;"
        "done=subprocess.run(sys.argv[1:],stdin=subprocess.DEVNULL,stdout=subprocess.DEVNULL);"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime+used.ru_stime);sys.exit(done.returncode)"
    )
    arguments = ("tools", "run", "shell", "--yes", "--args", json.dumps({"command": command}))
    done = subprocess.run(
        [sys.executable, "-c", program, SCRIPT, *arguments],
        env={**os.environ, "OLLM_HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return float(done.stdout)


def test_zeros_that_a_command_prints_cost_no_more_than_text(tmp_path: Path) -> None:
    size = 40_000_000
    text = measure_output(tmp_path, f"yes 'a line of text that is as long as most lines of text are' | head -c {size}")
    zeros = measure_output(tmp_path, f"head -c {size} /dev/zero")
    assert zeros < 3 * text + 1, f"{zeros:.1f} s for zeros, {text:.1f} s for text"


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
async def test_names_that_are_not_utf_8_stop_nothing(tmp_path: Path) -> None:
    """In the folder's own path, in a folder that is attached, and in what is typed."""
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    place.mkdir()
    async with running(place, ["One.", "Two.", "Three."]) as runner:
        (runner.workspace / "src").mkdir()
        (runner.workspace / "src" / os.fsdecode(b"\xe9t\xe9.txt")).write_text("summer")
        first = await runner.run("-p", "look @src/")
        second = await runner.run("-p", os.fsdecode(b"caf\xe9"), "--continue")
        third = await runner.run("-p", "go on", "--continue")

        assert [(one.code, one.out) for one in (first, second, third)] == [
            (0, "One.\n"),
            (0, "Two.\n"),
            (0, "Three.\n"),
        ]
        asked = [json.dumps(chat["messages"]) for chat in runner.server.chats]
        assert r"\\xe9t\\xe9.txt" in asked[0]
        assert r"caf\\xe9" in asked[1]
        assert len(runner.sessions()) == 1


ODD_NAMES = {rb"caf\xe9.txt": b"caf\xe9.txt", rb"new\x0aline.txt": b"new\nline.txt", rb"a\x1b\\b.txt": b"a\x1b\\b.txt"}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
@pytest.mark.parametrize("shown", ODD_NAMES)
async def test_a_name_that_is_no_line_of_text_is_shown_in_one_form_that_opens_the_file(
    tmp_path: Path, shown: bytes
) -> None:
    """In lists, calls, mentions, diffs and undo."""
    name = shown.decode()
    edits = [{"target": "summer", "replacement": "winter"}]
    script = [
        Answer(calls=[("glob", {"pattern": "*.txt"}), ("read_many_files", {"paths": ["*.txt"]})]),
        Answer(calls=[("edit_file", {"path": name, "edits": edits})]),
        "Done.",
    ]
    async with running(tmp_path, script) as runner:
        file = runner.workspace / os.fsdecode(ODD_NAMES[shown])
        file.write_text("summer\n")
        done = await runner.run("-p", f'look @"{name}" and @"{name.upper()}"', "--yes", "-o", "stream-json")
        listed = runner.server.chats[1]["messages"]
        changed = file.read_text()
        events = [json.loads(line) for line in done.out.splitlines()]
        undone = [await runner.run("-c", "-p", command) for command in ("/diff", "/undo")]

    assert done.code == 0, done.err
    assert "was not attached" in done.err
    said = [str(message["content"]) for message in listed if message["role"] == "tool"]
    assert f"[{name}]\n```\nsummer" in str(listed[1]["content"])
    assert said[0].splitlines()[0] == name
    assert f"=== {name} ===\nsummer" in said[1]
    assert changed == "winter\n"
    assert f"+++ b/{name}\n" in str([event["result"].get("diff") for event in events if "result" in event][-1])
    assert [(one.code, one.out.count(f"b/{name}")) for one in undone] == [(0, 1), (0, 1)]
    assert file.read_text() == "summer\n"
