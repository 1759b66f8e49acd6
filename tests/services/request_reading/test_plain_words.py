"""A request without its courtesies, and whether it forbids changes."""

import re

import pytest

from ollm.services.request_reading.plain_words import FILE_NAME, MAX_READ_CHARS, forbids_change, is_kept, strip_courtesy


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("Could you please rename a.py to b.py?", "rename a.py to b.py."),
        ("Hi, can you delete a.py", "delete a.py"),
        ("I'd like you to add a test.", "add a test."),
        ("Rename a.py to b.py", "Rename a.py to b.py"),
        ("Can a.py be deleted?", "Can a.py be deleted?"),
        ("Hello.py crashes.", "Hello.py crashes."),
        ("a.py dies. Can you make it print 0?", "a.py dies. make it print 0."),
        ("Would you mind putting x into a.py? Thanks.", "put x into a.py. Thanks."),
        ("Please move x.", "move x."),
        ("move `x`, please. Then run it thanks", "move `x`. Then run it"),
        ("let it print please.", "let it print please."),
        ("What is x, please?", "What is x, please?"),
        ("print please help", "print please help"),
        ("hey, can u quickly fix a.py?", "fix a.py."),
    ],
)
def test_courtesies_go(asked: str, plain: str) -> None:
    assert strip_courtesy(asked) == plain


@pytest.mark.parametrize(
    ("asked", "forbidden"),
    [
        ("Review a.py, but do not change anything.", True),
        ("Look at it without changing any files", True),
        ("Don't edit the code, only tell me", True),
        ("Find the bug; change nothing.", True),
        ("Fix a.py but do not change the tests.", False),
        ("Change a.py", False),
        ("Let it not write the header", False),
    ],
)
def test_changes_are_forbidden(asked: str, forbidden: bool) -> None:
    assert forbids_change(asked) is forbidden


@pytest.mark.parametrize(
    ("asked", "path", "kept"),
    [
        ("Make it pass, but don't edit test_a.py.", "test_a.py", True),
        ("Make it pass, but don't edit the test itself.", "tests/test_a.py", True),
        ("Make it pass, but don't edit the test itself.", "a.py", False),
        ("Set x to 1 in a.py, leave b.py as it is.", "b.py", True),
        ("Set x to 1 in a.py, leave b.py as it is.", "a.py", False),
        ("Rename f to g in all files except a.py and b.py.", "src/b.py", True),
        ("Do not delete a.py, fix it.", "a.py", False),
        ("Edit a.py.", "a.py", False),
        ("The import is not in a.py, add it there.", "a.py", False),
        ("The command did not change a.py. Do it.", "a.py", False),
        ("Don't change anything in a.py except PORT.", "a.py", False),
        ("Don't change a.py's header, add a line below it.", "a.py", False),
        ("a.py should stay fast.", "a.py", False),
        ("a.py must not be changed.", "a.py", True),
    ],
)
def test_files_that_are_to_stay_are_found(asked: str, path: str, kept: bool) -> None:
    assert is_kept(path, asked) is kept


def test_of_a_long_request_the_beginning_and_the_end_are_read() -> None:
    asked = "Fix a.py.\n\n" + "INFO  started  \n" * 9_000 + "\n\nDon't touch b.py."

    read = strip_courtesy(asked)

    assert len(read) < MAX_READ_CHARS + 10
    assert read.startswith("Fix a.py.\n")
    assert is_kept("b.py", read)


def test_long_words_and_gaps_are_shortened_and_paths_are_not() -> None:
    path = "/".join(["folder"] * 30) + "/a.py"

    assert strip_courtesy(f"Fix {path}.") == f"Fix {path}."
    assert len(strip_courtesy(f"Fix {'x' * 3_000}.")) < 300
    assert strip_courtesy("Fix a.py.\n\n\n\n\n\n\n\nRun it.") == "Fix a.py.\n\nRun it."


def test_a_name_is_found_from_its_first_character_on() -> None:
    said = ".github/ci.yml, x/.env ../a.py http://b.de/c.js `d-e_f.py` --g.h @i/j.ts a//k.py 1.2.3 l.tar.gz"

    assert re.findall(FILE_NAME, said) == [
        "github/ci.yml", "a.py", "b.de/c.js", "d-e_f.py", "--g.h", "@i/j.ts", "k.py", "l.tar.gz"
    ]  # fmt: skip
