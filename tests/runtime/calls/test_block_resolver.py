"""What the blocks of an answer become."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ollm.providers.base import CallPiece
from ollm.providers.text_calls.block_edits import ALREADY_RUN, OUTPUT_REPEATED
from ollm.runtime.calls.block_resolver import BlockResolver, Resolved, find_path
from ollm.runtime.model.block_answer import FILE_BLOCK
from tests.runtime.calls.test_project_files import Place

PROGRAM = "import sys\n\nprint(len(sys.argv))"


class Desk(Place):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.resolver = BlockResolver(self.files)

    def command(self, command: str, request: str = "Look.", ran: tuple[str, ...] = ()) -> Resolved:
        return self.resolver.resolve(CallPiece("shell", {"command": command}), request, ["app.yml"], ran)

    def block(self, path: str, content: str, request: str) -> tuple[str, object, str]:
        piece = CallPiece(FILE_BLOCK, {"path": path, "content": content, "whole": True})
        found = self.resolver.resolve(piece, request, [path], ())
        return found.name, found.arguments, found.refusal


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "w")
    made.write("app.yml", "x: 1\n")
    yield made
    made.discovery.close()


def test_a_program_in_a_shell_block_is_the_file_that_is_wanted_or_is_run(desk: Desk) -> None:
    written = desk.command(PROGRAM, "Write a script count.py that prints how many arguments it got.")
    assert (written.name, written.arguments) == ("write_file", {"path": "count.py", "content": f"{PROGRAM}\n"})
    assert written.refusal == ""
    ran = desk.command(PROGRAM, "How many arguments are there?")
    assert ran.arguments == {"command": f"python - <<'PROGRAM'\n{PROGRAM}\nPROGRAM"}
    for same in ("import -window root a.png", "echo 'import sys'", "from x import", "class Stack:"):
        assert desk.command(same).arguments == {"command": same}


def test_the_name_of_a_file_alone_shows_it(desk: Desk) -> None:
    assert desk.command("app.yml").arguments == {"command": "cat app.yml"}
    assert desk.command("none.yml").arguments == {"command": "none.yml"}


@pytest.mark.parametrize(
    ("command", "request_", "ran", "refusal"),
    [
        ("python a.py", "Fix a.py.", (), ""),
        ("python a.py", "Fix a.py.", ("python a.py",), ALREADY_RUN),
        ("python a.py", "Run a.py twice.", ("python a.py",), ""),
        ("python a.py -v", "Fix a.py.", ("python a.py",), ""),
        ("Traceback (most recent call last):", "Fix a.py.", (), OUTPUT_REPEATED),
    ],
)
def test_a_command_is_not_run_again_in_vain(
    desk: Desk, command: str, request_: str, ran: tuple[str, ...], refusal: str
) -> None:
    assert desk.command(command, request_, ran).refusal == refusal


def test_a_path_is_found_in_another_folder_where_the_request_names_it(desk: Desk) -> None:
    names = ["src/a.py", "b.py"]
    assert find_path("a.py", desk.files, names, "Change src/a.py.") == "src/a.py"
    assert find_path("a.py", desk.files, names, "Change a.py.") == "a.py"
    assert find_path("b.py", desk.files, names, "") == "b.py"
    assert find_path("b.py", desk.files, [*names, "src/b.py"], "Change src/b.py.") == "b.py"
    assert find_path("app.yml", desk.files, ["src/app.yml"], "Change src/app.yml.") == "app.yml"


@pytest.mark.parametrize(
    ("command", "endless"),
    [
        ("python -m http.server 8000", True),
        ("cd app && npm start", True),
        ("tail -f app.log", True),
        ("ping localhost", True),
        ("ping -c 1 localhost", False),
        ("yes | head -n 3", False),
        ("python -m http.server &", False),
        ("python app.py", False),
        ("echo watch", False),
    ],
)
def test_what_serves_until_it_is_stopped_is_stopped_soon(desk: Desk, command: str, endless: bool) -> None:
    assert desk.command(command).arguments == {"command": command, **({"timeout": 10} if endless else {})}


def test_a_call_of_another_tool_stays_as_it_is(desk: Desk) -> None:
    piece = CallPiece("read_file", {"path": "app.yml"})

    assert desk.resolver.resolve(piece, "Look.", [], ()) == Resolved(name="read_file", arguments={"path": "app.yml"})


TWO = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
SEARCHED = "<<<<<<< SEARCH\none\n=======\n2\n>>>>>>> REPLACE\n"
NOT_ALL = "{0} has {1} lines, and this block is not all of it: nothing was changed."


def overwrite(content: str) -> tuple[str, object, str]:
    return "write_file", {"content": content, "overwrite": True}, ""


def write(content: str, refusal: str = "") -> tuple[str, object, str]:
    return "write_file", {"content": content}, refusal


def edit(old: str, new: str, **more: bool) -> tuple[str, object, str]:
    return "edit_file", {"edits": [{"target": old, "replacement": new, **more}]}, ""


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize(
    ("path", "text", "request_", "content", "known", "unknown"),
    [
        (
            *("a.py", TWO, "Let a return 3. Change nothing else.", TWO.replace("1", "3").replace("2", "4")),
            *[overwrite(TWO.replace("1", "3"))] * 2,
        ),
        (
            *("a.py", TWO, "Let a return 3.", "def a():\n    return 3\n"),
            *[edit("def a():\n    return 1", "def a():\n    return 3")] * 2,
        ),
        (
            *("a.py", TWO, "Rewrite a.py.", "x = 1\n", overwrite("x = 1\n")),
            write("x = 1\n", NOT_ALL.format("a.py", 6)),
        ),
        (
            *("t.csv", "n,p\nsaw,1\nnut,3\n", "A saw is 2 now.", "n,p\nsaw,1\nnut,3\nsaw,2\n"),
            overwrite("n,p\nsaw,2\nnut,3\n"),
            write("n,p\nsaw,2\nnut,3\n", NOT_ALL.format("t.csv", 3)),
        ),
        ("a.txt", "one\n", "Set each one to 2.", SEARCHED, *[edit("one", "2")] * 2),
        ("a.txt", "one\none\n", "Set each one to 2.", SEARCHED, *[edit("one", "2", replaceAll=True)] * 2),
        (
            *("a.txt", "one\ntwo\n", "Write three there.", "three\n", overwrite("three\n")),
            write("three\n", NOT_ALL.format("a.txt", 2)),
        ),
        (
            *("a.txt", "one\ntwo\n", "Change b.txt. Don't touch a.txt.", "three\n"),
            *[write("three\n", "a.txt is to stay as it is: nothing was changed.")] * 2,
        ),
        ("new.txt", None, "Write new.txt.", "three\n", *[write("three\n")] * 2),
        ("new.txt", None, "Write new.txt.", "", *[write("")] * 2),
    ],
)
def test_a_block_is_the_change_that_is_meant(
    desk: Desk, path: str, text: str | None, request_: str, content: str, known: Any, unknown: Any, shown: bool
) -> None:
    if text is not None:
        desk.write(path, text)
    if shown:
        desk.files.remember_whole(path)

    name, arguments, refusal = known if shown else unknown
    assert desk.block(path, content, request_) == (name, {"path": path, **arguments}, refusal)
