"""What the blocks of an answer become."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.providers.base import CallPiece
from ollm.providers.text_calls.block_edits import ALREADY_RUN, OUTPUT_REPEATED
from ollm.runtime.calls.block_resolver import BlockResolver, Resolved, find_path
from tests.runtime.calls.test_project_files import Place

PROGRAM = "import sys\n\nprint(len(sys.argv))"


class Desk(Place):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.resolver = BlockResolver(self.files)

    def command(self, command: str, request: str = "Look.", ran: tuple[str, ...] = ()) -> Resolved:
        return self.resolver.resolve(CallPiece("shell", {"command": command}), request, ["app.yml"], ran)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "w")
    made.write("app.yml", "x: 1\n")
    yield made
    made.discovery.close()


def test_a_program_in_a_shell_block_is_the_file_that_is_wanted_or_is_run(desk: Desk) -> None:
    written = desk.command(PROGRAM, "Write a script count.py that prints how many arguments it got.")
    assert (written.name, written.arguments) == ("write_file", {"path": "count.py", "content": f"{PROGRAM}\n"})
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
    assert ("timeout" in desk.command(command).arguments) is endless
