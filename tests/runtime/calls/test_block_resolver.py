"""What the blocks of an answer become."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ollm.providers.base import CallPiece
from ollm.providers.text_calls.block_edits import ALREADY_RUN, BROKEN_OFF, OUTPUT_REPEATED
from ollm.runtime.calls.block_resolver import BlockResolver, Resolved, find_path
from ollm.runtime.calls.change_facts import apply_edits
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

    def file(self, path: str, content: str, request: str, *, show: bool = False) -> Resolved:
        if show:
            self.files.remember_whole(path)
        piece = CallPiece(FILE_BLOCK, {"path": path, "content": content, "whole": True})
        self.resolver.begin_answer()
        names = [str(found.relative_to(self.root)) for found in self.root.rglob("*") if found.is_file()]
        return self.resolver.resolve(piece, request, names, ())

    def apply(self, made: Resolved) -> str:
        assert isinstance(made.arguments, dict)
        if made.name == "write_file":
            return str(made.arguments["content"])
        return apply_edits((self.root / str(made.arguments["path"])).read_text(), made.arguments["edits"])


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
            write("n,p\nsaw,1\nnut,3\nsaw,2\n", NOT_ALL.format("t.csv", 3)),
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


LIBRARY = "class Library:\n    def give_back(self, title):\n        return 1\n\n    def lend(self, title):\n        return 2\n"


def test_a_function_under_the_name_of_the_failing_test_changes_the_file_that_has_it(desk: Desk) -> None:
    desk.write("library.py", LIBRARY)
    desk.write("test_library.py", "import library\n")
    request = "python test_library.py fails. fix the bug in library.py"
    made = desk.file("test_library.py", "def give_back(self, title):\n    return 3\n", request)
    assert (made.name, made.refusal) == ("edit_file", "")
    assert made.arguments["path"] == "library.py"
    kept = desk.file("test_library.py", "def other():\n    return 3\n", request)
    assert kept.refusal == "test_library.py shows what is wrong and stays as it is: nothing was changed."


def test_what_is_to_be_in_another_file_is_not_taken_here(desk: Desk) -> None:
    desk.write("words.py", "def shout():\n    return 1\n")
    request = "write a function count(text) in words.py and a test in test_words.py"
    both = "def count(text):\n    return 1\n\n\ndef test_count():\n    assert count('') == 1\n"
    told = desk.file("test_words.py", both, request).refusal
    assert told == "count is to be in words.py, not in test_words.py: nothing was changed. Write words.py first."
    assert desk.file("words.py", "def count(text):\n    return 1\n", request).refusal == ""
    desk.write("words.py", "def count(text):\n    return 1\n")
    made = desk.file("test_words.py", both, request)
    assert desk.apply(made) == "from words import count\n\n\ndef test_count():\n    assert count('') == 1\n"


def test_nothing_is_written_into_a_folder_that_goes_nor_imported_from_it(desk: Desk) -> None:
    desk.write("legacy/__init__.py", "old = 1\n")
    desk.write("main.py", "from legacy import old\n\nprint(1)\n")
    request = "delete the folder legacy and the import of it in main.py"
    inside = desk.file("legacy/__init__.py", "old = 2\n", request).refusal
    assert inside == "legacy/__init__.py is in a folder that is to be deleted: nothing was changed."
    importing = desk.file("main.py", "from legacy import old\n\nprint(2)\n", request).refusal
    assert importing.startswith("legacy is to go, and this block for main.py imports it: nothing was changed.")
    braces = desk.file("{x}.py", "import legacy\n", request).refusal
    assert braces.endswith("Write {x}.py without legacy.")
    assert desk.file("main.py", "print(1)\n", request, show=True).refusal == ""


def test_a_file_that_functions_move_to_must_have_them(desk: Desk) -> None:
    desk.write("weather.py", "def c_to_f(c):\n    return {c: 2}\n")
    request = "Move c_to_f out of weather.py into a new file units.py."
    told = desk.file("units.py", "from weather import c_to_f\n", request).refusal
    assert told.startswith("units.py is to define c_to_f: nothing was changed.")
    assert "def c_to_f(c):\n    return {c: 2}\n```" in told
    assert desk.file("units.py", "def c_to_f(c):\n    return {c: 2}\n", request).refusal == ""


def test_a_class_that_comes_without_some_methods_keeps_them(desk: Desk) -> None:
    desk.write("library.py", LIBRARY)
    short = "class Library:\n    def give_back(self, title):\n        return 3\n\n    def longest(self):\n        return 4\n"
    made = desk.file("library.py", short, "Library should have a method longest", show=True)
    assert made.refusal == ""
    after = desk.apply(made)
    for line in ("return 3", "def longest", "def lend", "return 2"):
        assert line in after


def test_a_text_in_quotes_is_not_lost_by_the_way(desk: Desk) -> None:
    desk.write("todo.md", "- [ ] buy paint\n- [ ] mow\n- [x] call\n")
    request = "tick off 'buy paint' in todo.md"
    lost = desk.file("todo.md", "- [ ] mow\n- [x] call\n", request, show=True).refusal
    assert lost == "Nothing was changed: with this block todo.md loses 'buy paint'."
    ticked = desk.file("todo.md", "- [x] buy paint\n- [ ] mow\n- [x] call\n", request, show=True)
    assert ticked.refusal == ""


def test_lines_of_settings_are_json_in_a_file_of_that_kind(desk: Desk) -> None:
    made = desk.file("settings.json", "theme: dark\nsize: 14\n", "create settings.json with theme dark and size 14")
    assert json.loads(str(made.arguments["content"])) == {"theme": "dark", "size": 14}


def test_a_call_that_is_no_object_or_broke_off_is_not_read_further(desk: Desk) -> None:
    raw = desk.resolver.resolve(CallPiece("shell", "ls"), "Look.", [], ())
    assert (raw.name, raw.arguments, raw.refusal) == ("shell", "ls", "")
    broken = desk.resolver.resolve(CallPiece("shell", {"command": "ls", "brokenOff": True}), "Look.", [], ())
    assert (broken.name, broken.arguments, broken.refusal) == ("shell", {"command": "ls"}, BROKEN_OFF)
    half = CallPiece(FILE_BLOCK, {"path": "new.txt", "content": "one\n", "whole": False})
    made = desk.resolver.resolve(half, "Write new.txt.", [], ())
    assert (made.name, made.arguments, made.refusal) == (
        "write_file",
        {"path": "new.txt", "content": "one\n"},
        BROKEN_OFF,
    )


@pytest.mark.parametrize(
    ("command", "request_"),
    [
        ("ls -a", "Write a script count.py that prints how many arguments it got."),
        ("cat > new.yml <<'EOF'\nx: 2\nEOF", "Write new.yml."),
    ],
)
def test_a_command_stays_one_where_it_is_no_program_and_writes_no_file_there_is(
    desk: Desk, command: str, request_: str
) -> None:
    made = desk.command(command, request_)

    assert (made.name, made.arguments, made.refusal) == ("shell", {"command": command}, "")


@pytest.mark.parametrize("request_", ["Write notes.txt.", "Write a script one.py and a script two.py.", "Fix old.py."])
def test_a_program_is_run_where_no_single_script_is_to_come(desk: Desk, request_: str) -> None:
    desk.write("old.py", "x = 1\n")

    assert desk.command(PROGRAM, request_).arguments == {"command": f"python - <<'PROGRAM'\n{PROGRAM}\nPROGRAM"}


def test_a_command_that_only_writes_a_file_that_is_there_is_a_block_of_it(desk: Desk) -> None:
    desk.files.remember_whole("app.yml")
    made = desk.command("cat > app.yml <<'EOF'\nx: 2\nEOF", "Set x to 2 in app.yml.")

    assert made.name in ("write_file", "edit_file")
    assert (desk.apply(made), made.refusal) == ("x: 2\n", "")


def test_a_file_that_cannot_be_read_is_left_to_the_tool(desk: Desk) -> None:
    (desk.root / "a.bin").write_bytes(b"\x00\xff\x00\x80")
    made = desk.file("a.bin", "text\n", "Write a.bin.")

    assert (made.name, made.arguments, made.refusal) == ("write_file", {"path": "a.bin", "content": "text\n"}, "")


@pytest.mark.parametrize(("path", "taken"), [("a.txt", True), ("a.py", False)])
def test_what_came_in_this_turn_may_come_again_in_part_unless_it_is_code(desk: Desk, path: str, taken: bool) -> None:
    desk.write(path, "one = 1\ntwo = 2\nthree = 3\n")
    before = desk.file(path, "four = 4\n", "Write it.")
    desk.resolver.made = {path}
    made = desk.file(path, "four = 4\n", "Write it.")

    assert before.refusal == NOT_ALL.format(path, 3)
    assert made.refusal == ("" if taken else before.refusal)
    assert made.arguments == {"path": path, "content": "four = 4\n", **({"overwrite": True} if taken else {})}


def test_a_block_finds_the_file_as_the_blocks_before_it_in_the_answer_leave_it(desk: Desk) -> None:
    desk.write("a.txt", "one\nend\n")
    first, again = SEARCHED.replace("2", "two\ntwo"), SEARCHED.replace("one", "two").replace("2", "three")
    every = {"path": "a.txt", "edits": [{"target": "two", "replacement": "three", "replaceAll": True}]}
    once = {"path": "a.txt", "edits": [{"target": "two", "replacement": "three"}]}
    assert desk.block("a.txt", first, "Set every number.")[0] == "edit_file"
    assert desk.block("a.txt", again, "Set every number.") == ("edit_file", every, "")
    desk.resolver.begin_answer()

    assert desk.block("a.txt", again, "Set every number.") == ("edit_file", once, "")


def test_a_block_that_was_refused_changes_nothing_for_the_next_one(desk: Desk) -> None:
    desk.write("a.txt", "one\nend\n")
    first, again = SEARCHED.replace("2", "two\ntwo"), SEARCHED.replace("one", "two").replace("2", "three")
    half = CallPiece(FILE_BLOCK, {"path": "a.txt", "content": first, "whole": False})
    refused = desk.resolver.resolve(half, "Set every number.", ["a.txt"], ())
    assert refused.refusal == BROKEN_OFF
    assert refused.arguments == {"path": "a.txt", "content": first}

    made = desk.block("a.txt", again, "Set every number.")
    assert made == ("edit_file", {"path": "a.txt", "edits": [{"target": "two", "replacement": "three"}]}, "")


def test_only_the_one_file_that_has_all_functions_of_a_block_is_its_home(desk: Desk) -> None:
    both = "def give_back(self):\n    return 1\n"
    desk.write("library.py", both)
    desk.write("shelf.py", both)
    desk.write("test_library.py", "import library\n")
    request = "python test_library.py fails. fix the bug in library.py and in shelf.py"
    assert desk.file("test_library.py", both, request).refusal != ""
    assert desk.file("test_library.py", "x = 1\n", request.replace(" and in shelf.py", "")).refusal != ""
    more = both + "\n\ndef lend(self):\n    return 2\n"
    assert desk.file("test_library.py", more, request.replace(" and in shelf.py", "")).refusal != ""


def test_a_file_of_the_same_name_in_a_folder_is_the_place_that_was_asked(desk: Desk) -> None:
    desk.write("src/words.py", "def shout():\n    return 1\n")
    request = "write a function count(text) in src/words.py"

    assert desk.file("src/words.py", "def count(text):\n    return 1\n", request).refusal == ""
    assert desk.file("words.py", "def count(text):\n    return 1\n", request).refusal == ""
    assert desk.file("other.py", "def shout(text):\n    return 1\n", request).refusal == ""
    assert desk.file("other.py", "def count(text):\n    return 1\n", request).refusal != ""


def test_a_file_that_is_to_stay_may_come_where_there_is_none(desk: Desk) -> None:
    request = "Write b.txt. Don't touch a.txt."
    assert desk.file("a.txt", "one\n", request).refusal == ""
    desk.write("a.txt", "one\n")

    assert desk.file("a.txt", "two\n", request).refusal == "a.txt is to stay as it is: nothing was changed."


def test_two_files_of_one_name_leave_a_path_as_it_is(desk: Desk) -> None:
    names = ["src/a.py", "lib/a.py"]

    assert find_path("a.py", desk.files, names, "Change src/a.py and lib/a.py.") == "a.py"
