"""The chat on a terminal: start to prompt, key to echo, the cost of streaming, memory over many turns."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.row import Row, program
from bench.terminal import Terminal
from bench.workspace import written

ROOT = Path(__file__).parent.parent
COMMAND = str(Path(sys.executable).parent / "ollm")
STARTS = 11
FILES = 100_000
MESSAGES = 10_000
SESSIONS = 1_000
WINDOW = "131072"  # nothing is folded while a figure is taken
TURNS = int(os.environ.get("BENCH_TURNS", "1000"))
PROMPT = "› "


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as directory:
        yield start_to_prompt(Path(directory) / "start")
        yield from keys_and_streaming(Path(directory) / "large")
        yield picking(Path(directory) / "many")
        yield memory(Path(directory) / "long")


def start_to_prompt(directory: Path) -> Row:
    bare = program([sys.executable, "-I", "-c", "pass"])
    ours, theirs = [], []
    with server(directory, []) as url:
        for _ in range(STARTS + 1):
            with chat(directory, url) as terminal:
                ours.append(terminal.wait_for(PROMPT) - terminal.began)
            begin = time.perf_counter()
            bare()
            theirs.append(time.perf_counter() - begin)
    return Row("start to prompt", statistics.median(ours[1:]) * 1000, statistics.median(theirs[1:]) * 1000, 24, "ms")


def keys_and_streaming(directory: Path) -> Iterator[Row]:
    """In a project of many files, with a long session taken up again."""
    many_files(directory / "work")
    (directory / "home" / "sessions").mkdir(parents=True)
    session = written(directory, MESSAGES)
    story = "".join(f"Token {number} of it.{chr(10) * 2 if number % 40 == 39 else ''} " for number in range(500))
    told = [{"text": story, "pace": 0.004}]
    with server(directory, told) as url, chat(directory, url, "--session", session) as terminal:
        terminal.wait_for("scripted @")
        yield keys(terminal)
        terminal.type("\x03" + "go\r")
        yield streaming(terminal)


def streaming(terminal: Terminal) -> Row:
    """What 200 tokens cost. A machine that is too busy for that many in a second paints more often for each."""
    terminal.wait_for("Token")
    process, begin = psutil.Process(terminal.pid), time.perf_counter()
    spent = sum(process.cpu_times()[:2])
    terminal.wait_for("499 of it.")
    share = 100 * (sum(process.cpu_times()[:2]) - spent) * 200 / 2000
    rate = 2000 / (time.perf_counter() - begin)
    note = f"measured at {rate:.0f}"
    return Row("streaming 200 tokens/s", share, None, 15, "% of a core", of="figure", note=note)


def picking(directory: Path) -> Row:
    """Letters that narrow the list of sessions, each redrawn at once."""
    (directory / "home" / "sessions").mkdir(parents=True)
    (directory / "work").mkdir()
    for _ in range(SESSIONS):
        written(directory, 4)
    with server(directory, []) as url, chat(directory, url, "--workspace", ".") as terminal:
        terminal.wait_for("Resume a chat")
        terminal.wait_for("Esc new chat")
        time.sleep(0.5)
        taken = typed(terminal, "qvzqwkyxjzq")
    note = f"90th percentile, {SESSIONS:,} sessions; median {statistics.median(taken):.1f}"
    return Row("key to echo in the list of sessions", slowest(taken), None, 16, "ms", of="figure", note=note)


def keys(terminal: Terminal) -> Row:
    """The letters of a path, typed as a quick person types, while all files are searched for it; against plain text.

    No letter stands in an escape sequence: what is seen is the echo."""
    plain = typed(terminal, "qvzfie77qwkyx")
    terminal.type("\x03see @")
    terminal.wait_for("dir0")  # the first list is there
    taken: list[float] = []
    for word in ("qvzfie77", "wkjyxbqz"):
        taken += typed(terminal, word)
        terminal.type(" @")
        time.sleep(0.3)
    note = f"90th percentile, {FILES:,} files, {MESSAGES:,} messages; median {statistics.median(taken):.1f}"
    return Row("key to echo", slowest(taken), slowest(plain), 16, "ms", of="figure", note=note)


def typed(terminal: Terminal, word: str) -> list[float]:
    """Milliseconds from each key to its echo."""
    taken = []
    for letter in word:
        time.sleep(0.06)
        taken.append(terminal.echo(letter) * 1000)
    return taken


def slowest(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=10)[-1]


def memory(directory: Path) -> Row:
    """What the program holds after many turns, against what it held after ten."""
    answers = [f"Answer number {number}." for number in range(2 * TURNS)]
    with server(directory, answers) as url, chat(directory, url) as terminal:
        terminal.wait_for("scripted @")
        process, early = psutil.Process(terminal.pid), 0
        for number in range(TURNS):
            said = len(terminal.written)
            terminal.type(f"turn {number}\r")
            terminal.wait_for("Answer number", said)
            if number == 9:
                early = process.memory_info().rss
        late = process.memory_info().rss
    return Row(f"memory after {TURNS:,} turns", late / 1e6, early / 1e6, 1.2, "MB", note="against 10 turns")


def chat(directory: Path, url: str, *choice: str) -> Terminal:
    """A new session, unless told otherwise."""
    work, home = directory / "work", directory / "home"
    work.mkdir(parents=True, exist_ok=True)
    home.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "OLLM_HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "OLLM_PROVIDER": "openai",
        "OLLM_BASE_URL": url,
        "OLLM_MODEL": "scripted",
        "OLLM_CONTEXT_WINDOW": WINDOW,
    }
    return Terminal([COMMAND, "chat", *(choice or ("--new",))], environment, work)


@contextmanager
def server(directory: Path, script: list[object]) -> Iterator[str]:
    """A scripted server in a process of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "script.json").write_text(json.dumps(script), encoding="utf-8")
    command = [sys.executable, "-m", "tests.servers.openai", "--script", str(directory / "script.json")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def many_files(root: Path) -> None:
    for number in range(FILES // 100):
        folder = root / f"dir{number % 50}" / f"part{number}"
        folder.mkdir(parents=True)
        for file in range(100):
            (folder / f"file{number}-{file}.py").touch()
