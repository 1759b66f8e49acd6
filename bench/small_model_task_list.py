"""Ten small tasks a person asks of a coding agent, the files each starts from and a look at whether it is done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ollm.domain.struct import Data

Look = Callable[[Path, str], bool]


class Task(Data, frozen=True):
    """`done` looks at the workspace and at what was answered."""

    name: str
    asked: str
    files: Mapping[str, str]
    done: Look


def holds(path: str, *texts: str) -> Look:
    def look(workspace: Path, _answer: str) -> bool:
        file = workspace / path
        return file.is_file() and all(text in file.read_text(encoding="utf-8") for text in texts)

    return look


def says(*texts: str) -> Look:
    return lambda _workspace, answer: all(text in answer for text in texts)


def every(*looks: Look) -> Look:
    return lambda workspace, answer: all(look(workspace, answer) for look in looks)


def gone(path: str) -> Look:
    return lambda workspace, _: not (workspace / path).exists()


def prints(script: str, output: str) -> Look:
    """Whether the script, run by Python, prints just this."""

    def look(workspace: Path, _answer: str) -> bool:
        command = (sys.executable, script)
        done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=10, check=False)
        return done.stdout.split() == output.split()

    return look


def compact(path: str, text: str) -> Look:
    """Whether the file holds this text, spaces aside."""
    return lambda workspace, _: text in (workspace / path).read_text("utf-8").replace(" ", "")


CONFIG = {"config.ini": "[server]\nport = 80\n"}
ADD = {
    "add.py": "def add(a, b):\n    return a - b\n",
    "test_add.py": "from add import add\n\nassert add(2, 3) == 5\n",
}
FOO = {"one.py": "def foo():\n    return 1\n", "two.py": "from one import foo\n\nprint(foo())\n"}
TASKS = (
    Task(
        name="find a string and say the file",
        asked="Which file contains the text SECRET_PORT? Say its name.",
        files={"one.py": "a = 1\n", "two.py": "SECRET_PORT = 9\n"},
        done=says("two.py"),
    ),
    Task(
        name="read a value",
        asked="Read config.ini and say the port.",
        files={"config.ini": "[server]\nport = 8471\n"},
        done=says("8471"),
    ),
    Task(
        name="create a file",
        asked="Create notes.txt with the text hello world.",
        files={"a.py": "a = 1\n"},
        done=holds("notes.txt", "hello world"),
    ),
    Task(
        name="change a value",
        asked="In config.ini change the port from 80 to 8080.",
        files=CONFIG,
        done=compact("config.ini", "port=8080"),
    ),
    Task(
        name="add a line to a config",
        asked="Add the line debug = true at the end of config.ini.",
        files=CONFIG,
        done=holds("config.ini", "port = 80", "debug = true"),
    ),
    Task(
        name="fix a failing one-line test",
        asked="python test_add.py fails. Fix the function in add.py.",
        files=ADD,
        done=holds("add.py", "a + b"),
    ),
    Task(
        name="run a command",
        asked="Run python main.py and say what it prints.",
        files={"main.py": "print(6 * 7 * 100)\n"},
        done=says("4200"),
    ),
    Task(
        name="fix a typo",
        asked="Fix the typo recieve in README.md; it should be receive.",
        files={"README.md": "You will recieve mail.\n"},
        done=holds("README.md", "You will receive mail."),
    ),
    Task(
        name="rename a function in two files",
        asked="Rename the function foo to bar in one.py and in two.py.",
        files=FOO,
        done=every(holds("one.py", "def bar"), holds("two.py", "import bar", "print(bar())")),
    ),
    Task(
        name="count lines",
        asked="How many lines has data.txt? Use a tool.",
        files={"data.txt": "x\n" * 37},
        done=says("37"),
    ),
)
