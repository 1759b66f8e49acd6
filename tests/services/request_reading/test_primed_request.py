"""What goes with a request to a small model."""

import pytest

from ollm.services.request_reading.excerpts import choose_spans, find_words, is_identifier, merge_spans, show_excerpt
from ollm.services.request_reading.primed_request import (
    Primed,
    find_lines,
    find_named,
    find_only_run,
    is_short,
    number_columns,
    prime_request,
    show_whole,
)

STORE = "import math\n\n\n" + "".join(f"def total_{n}(items):\n    return sum(items) + {n}\n\n\n" for n in range(60))
FILES = {
    "conf.py": "DEBUG = False\nLIMIT = 12\n",
    "store.py": STORE,
    "src/app.py": "print(1)\n",
    "test_store.py": "from store import total_7\n\nassert total_7([]) == 0\n",
    "server.log": "".join(f"10:{n % 60:02} {'ERROR' if n % 9 == 0 else 'INFO'} line {n}\n" for n in range(300)),
}


def prime(request: str, max_chars: int = 9000) -> str:
    return prime_request(request, sorted(FILES), FILES.get, max_chars).text


def test_names_come_always_and_the_text_of_short_files_that_are_named() -> None:
    told = prime("Change LIMIT in conf.py to 20.")
    assert told.startswith("Files here: conf.py, server.log, src/app.py, store.py, test_store.py")
    assert "conf.py:\n```\nDEBUG = False\nLIMIT = 12\n```" in told
    assert "print(1)" not in told
    assert prime_request("Change conf.py", sorted(FILES), FILES.get, 9000).whole == ("conf.py",)


def test_of_a_long_file_comes_what_the_request_or_a_short_file_names() -> None:
    assert "def total_31(items):\n    return sum(items) + 31" in prime("Fix total_31 in store.py")
    told = prime("python test_store.py fails. Find the bug in store.py.")
    assert "def total_7(items):" in told
    assert "total_8" not in told


def test_a_word_that_stands_on_many_lines_is_shown_by_its_first() -> None:
    told = prime("When does the first ERROR in server.log happen?")
    assert "10:00 ERROR line 0" in told
    assert told.count("ERROR") == 2


def test_what_is_only_run_moved_or_deleted_is_not_shown() -> None:
    assert "```" not in prime("Run python src/app.py and tell me what it prints.")
    assert "```" not in prime("Delete the file conf.py.")
    assert "```" not in prime("Rename conf.py to settings.py.")


def test_a_word_that_becomes_another_is_shown_where_it_stands() -> None:
    told = prime("Rename total_7 to sum_7 in store.py and test_store.py.")
    assert "test_store.py:1:from store import total_7" in told
    assert "store.py:32:def total_7(items):" in told


def test_it_keeps_within_its_room() -> None:
    told = prime("Change LIMIT in conf.py and total_3 in store.py", max_chars=120)
    assert len(told) <= 120


FUNCTIONS = [f"def func_{n}(a):\n    doc = {n}\n    x = a\n    return x\n" for n in range(12)]
REPORT = "def report():\n    total_sum = 3\n    return total_sum\n"
MODULE = "\n".join(["import os\n\nLIMIT = 3", *FUNCTIONS, REPORT])
HEAD = "import os\n\nLIMIT = 3\n"


@pytest.mark.parametrize(
    ("request_", "words", "how", "shown"),
    [
        ("Fix func_3 please", [], "Parts of it", FUNCTIONS[3]),
        ("nothing known here", ["func_5"], "Parts of it", FUNCTIONS[5]),
        ("Mend total_sum", [], "Parts of it", REPORT),
        ("Look at LIMIT", [], "Parts of it", f"{HEAD}def func_0(a):\n    doc = 0\n    x = a\n"),
        ("Fix func_3 and func_7", [], "Parts of it", f"{FUNCTIONS[3]}...\n{FUNCTIONS[7]}"),
        (
            "the word return",
            [],
            "It begins",
            f"{HEAD}...\n    return x\n\n{FUNCTIONS[9]}\n{FUNCTIONS[10]}\n{FUNCTIONS[11]}\n{REPORT}",
        ),
    ],
)
def test_which_part_of_a_long_file_is_shown(request_: str, words: list[str], how: str, shown: str) -> None:
    assert show_excerpt("a.py", MODULE, request_, words) == f"a.py is long (66 lines). {how}:\n```\n{shown}```"


def test_of_a_text_in_which_nothing_is_named_the_beginning_is_shown() -> None:
    rows = "\n".join(f"row {number} {'x' * 300}" for number in range(50))

    told = show_excerpt("a.txt", rows, "zzz", [])

    begun = "\n".join(f"row {number} {'x' * 300}"[:240] for number in range(3))
    assert told == f"a.txt is long (50 lines). It begins:\n```\n{begun}\n```"
    assert show_whole("a", "x\n\n") == "a:\n```\nx\n```"


def test_what_is_short_and_what_may_name_something() -> None:
    assert is_short("x" * 3200)
    assert not is_short("x" * 3201)
    assert is_short("\n" * 50)
    assert not is_short("\n" * 51)
    assert find_words("the LIMIT of ab abc and abc get_x") == ["LIMIT", "abc", "get_x"]
    assert merge_spans([(5, 7), (1, 3), (2, 4), (7, 9), (12, 13)]) == [(1, 4), (5, 9), (12, 13)]


@pytest.mark.parametrize(
    ("name", "head", "told"),
    [
        ("a.csv", "id, name,Total sum", "\nColumns: $1 id, $2 name, $3 Total sum"),
        ("a.csv", "id,n", "\nColumns: $1 id, $2 n"),
        ("a.txt", "id,name", ""),
        ("a.csv", "id", ""),
        ("a.csv", "1,2", ""),
        ("a.csv", "id,2", ""),
        ("a.csv", ",".join("c" * 20), "\nColumns: " + ", ".join(f"${n} c" for n in range(1, 21))),
        ("a.csv", ",".join("c" * 21), ""),
    ],
)
def test_columns_are_numbered(name: str, head: str, told: str) -> None:
    assert number_columns(name, f"{head}\n1,2,3\n") == told


def test_lines_and_files_that_are_named() -> None:
    texts = {"a": f"x one\nyone\none two {'z' * 300}", "b": "one"}
    assert find_lines(texts, ["one", "two"]) == f"Lines:\na:1:x one\na:3:one two {'z' * 152}\nb:1:one"
    assert find_lines({"a": "one\n" * 20}, ["one"]).endswith("\na:20:one")
    assert find_lines({"a": "one\n" * 22}, ["one"]).endswith("\na:20:one\n… and 2 more lines")
    assert find_lines({"a": "x"}, ["one"]) == ""
    names = ["a.py", "src/b.py", "lib/b.py", "c.py", "d.py", "src/a.py"]
    assert find_named("look at a.py and lib/b.py, not c.pyc or x/d.py", names) == ["a.py", "lib/b.py", "src/a.py"]
    assert find_only_run("Run python a.py and run sh b.sh. Change b.sh.", ["a.py", "b.sh", "c.py"]) == ["a.py"]


def test_forty_names_are_listed_and_the_rest_counted() -> None:
    names = [f"f{number:02}.txt" for number in range(42)]

    def listed(count: int, request: str = "hello") -> str:
        return prime_request(request, names[:count], lambda _: None, 9000).text

    assert listed(40) == f"Files here: {', '.join(names[:40])}"
    assert listed(41) == f"Files here: {', '.join(names[:40])} and 1 more"
    assert listed(42, "look at f41.txt") == f"Files here: {', '.join([*names[:39], names[41]])} and 2 more"
    assert listed(0) == ""


def test_short_files_come_first_and_each_is_shown_while_there_is_room() -> None:
    files = {"a.py": STORE, "b.py": "x = 1\n", "c.py": "y = 2\n"}
    head = "Files here: a.py, b.py, c.py"
    short = [f"{name}:\n```\n{files[name].strip()}\n```" for name in ("b.py", "c.py")]
    room = len(head) + sum(map(len, short))

    def primed(most: int) -> Primed:
        return prime_request("Fix total_3 in a.py, b.py and c.py", list(files), files.get, most)

    whole = primed(9000)
    assert whole.text.startswith(
        "\n\n".join((head, *short, "a.py is long (243 lines). Parts of it:\n```\ndef total_3("))
    )
    assert (whole.whole, whole.meant) == (("b.py", "c.py"), ())
    assert primed(room).text == "\n\n".join((head, *short))
    assert primed(room - 1).text == "\n\n".join((head, short[0]))
    assert primed(room - 1).whole == ("b.py",)


@pytest.mark.parametrize(
    ("lines", "asked", "spans"),
    [
        (["x"] * 20 + ["key_a"] + ["x"] * 20, ["key_a"], [(17, 24)]),
        (["key_a"] + ["x"] * 5, ["key_a"], [(0, 4)]),
        (["x"] * 5 + ["key_a"], ["key_a"], [(2, 6)]),
        (["x", "key_a", "key_a", "x"] + ["x"] * 9, ["key_a"], [(0, 5)]),
        ((["key_a"] + ["x"] * 9) * 8, ["key_a"], [(0, 4), *((10 * n - 3, 10 * n + 4) for n in range(1, 8))]),
        ((["key_a"] + ["x"] * 9) * 9, ["key_a"], [(0, 1), (10, 11)]),
        ((["word"] + ["x"] * 9) * 9, ["word"], []),
        (["x"] * 5 + ["my_key_a", "key_ab"], ["key_a"], []),
        (["def fun():", *["    x"] * 50, "key_a"], ["fun"], [(0, 45)]),
        (["def fun():", *["    x"] * 3, "word", "key_a"], ["fun", "word", "key_a"], [(0, 4), (2, 6)]),
    ],
)
def test_which_lines_are_chosen(lines: list[str], asked: list[str], spans: list[tuple[int, int]]) -> None:
    assert choose_spans(lines, " ".join(asked), []) == spans


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("key_a", True), ("a1", True), ("#fff", True), ("aB", True), ("ABC", True), ("AB", False), ("word", False),
        ("Word", False), ("ValueError", False), ("my_Error", False), ("HTTPException", False),
    ],
)  # fmt: skip
def test_what_is_a_name_and_no_word(word: str, told: bool) -> None:
    assert is_identifier(word) is told


def test_an_excerpt_is_sixty_lines_at_most_and_gaps_are_marked() -> None:
    lines = [f"def f{number}():\n" + "    x\n" * 9 for number in range(12)]
    text = "".join(lines)

    def shown(*numbers: int) -> str:
        return show_excerpt("a.py", text, " ".join(f"f{number}()" for number in numbers), [f"f{n}" for n in numbers])

    head = "a.py is long (120 lines). Parts of it:\n```\n"
    assert shown(1, 2) == f"{head}{lines[1]}{lines[2]}```"
    assert shown(1, 3) == f"{head}{lines[1]}...\n{lines[3]}```"
    assert shown(0, 1, 2, 3, 4, 5) == f"{head}{''.join(lines[:6])}```"
    assert shown(0, 1, 2, 3, 4, 6) == f"{head}{''.join(lines[:5])}...\n{lines[6]}```"
    assert shown(0, 1, 2, 3, 4, 5, 7) == f"{head}{''.join(lines[:6])}```"


def test_a_short_file_that_does_not_fit_comes_as_the_part_that_is_asked_for() -> None:
    text = "".join(f"def total_{n}(items):\n    return sum(items) + {n}\n\n\n" for n in range(9))

    def prime_file(most: int) -> Primed:
        return prime_request("Change total_3 in a.py.", ["a.py"], {"a.py": text}.get, most)

    assert prime_file(600).whole == ("a.py",)
    part = prime_file(300)
    assert part.whole == ()
    assert "def total_3(items):\n    return sum(items) + 3" in part.text
    assert "total_5" not in part.text
    assert len(part.text) <= 300
