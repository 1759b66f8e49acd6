"""Commands that a request says in full, and that they do what it says."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.whole_commands import find_setting_command, find_whole_command

CONF = "# Api\nAPI_PORT = 1039\nAPI_RETRIES = 3\nSTORE_RETRIES = 3  # times\nMEDIA_ENABLED = True\nNAME = 'x'\n"


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("Delete the file old.txt.", "rm old.txt"),
        ("Please remove old.txt and a.py.", "rm old.txt a.py"),
        ("Rename old.txt to new.txt.", "mv old.txt new.txt"),
        ("Rename old.txt to Makefile.", "mv old.txt Makefile"),
        ("Move old.txt into docs.", "mkdir -p docs && mv old.txt docs/"),
        ("Copy old.txt to backup.", ""),
        ("Make a copy of a.py called a.bak.", "cp a.py a.bak"),
        ("Move a.py and b.py into the folder lib.", "mkdir -p lib && mv a.py b.py lib/"),
        ("Make a folder docs and move a.py into it.", "mkdir -p docs && mv a.py docs/"),
        ("Rename the function load to fetch in a.py and b.py.", r"sed -i 's/\bload\b/fetch/g' a.py b.py"),
        ("Run python a.py and tell me what it prints.", "python a.py"),
        ("python b.py fails. Fix a.py.", "python b.py"),
        ("Run python a.py with the argument 5.", ""),
        ("Remove the function load from a.py.", ""),
        ("Delete the file unknown.txt.", ""),
        ("Delete old.txt from the list in a.py.", ""),
        ("Write a script fib.py and run it.", ""),
    ],
)
def test_a_command_is_whole_only_where_the_words_say_all_of_it(request_: str, command: str) -> None:
    assert find_whole_command(request_, "\n\nFiles here: a.py, b.py, old.txt") == command


@pytest.mark.parametrize(
    ("request_", "changes"),
    [
        (
            "Set API_PORT to 9000, STORE_RETRIES to 5 and MEDIA_ENABLED to false in conf.py.",
            {"API_PORT = 1039": "API_PORT = 9000", "S = 3  # times": "S = 5  # times", "= True": "= False"},
        ),
        ("Change NAME in conf.py to a/b&c.", None),
        ("Change NAME in conf.py to a/b.", {"'x'": "'a/b'"}),
        ("Set RETRIES to 5 in conf.py.", None),
        ("Change the title of conf.py to Welcome home.", None),
        ("Set API_PORT to 9000 and give NAME something better in conf.py.", {"1039": "9000"}),
        ("Set API_PORT to 9000 and everything else to something in conf.py.", None),
    ],
)
def test_values_are_set_in_the_lines_of_their_names_alone(
    tmp_path: Path, request_: str, changes: dict[str, str] | None
) -> None:
    (tmp_path / "conf.py").write_text(CONF)
    command, count = find_setting_command(request_, f"\n\nFiles here: conf.py\n\nconf.py:\n```\n{CONF}```")
    wanted = CONF
    for old, new in (changes or {}).items():
        wanted = wanted.replace(old, new)

    assert (count, bool(command)) == (len(changes or ()), changes is not None)
    subprocess.run(command or "true", shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "conf.py").read_text() == wanted


@pytest.mark.parametrize(
    ("request_", "changed"),
    [
        ("Rename load to fetch everywhere.", {"a.py", "test_a.py"}),
        ("Rename load to fetch everywhere except in a.py.", set()),
        ("Rename load to fetch everywhere, but don't touch the tests.", set()),
    ],
)
def test_a_word_becomes_another_in_files_of_the_project_that_may_change(
    tmp_path: Path, request_: str, changed: set[str]
) -> None:
    names = ("a.py", "test_a.py", ".venv/lib.py", "node_modules/b.py")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("load()\n")

    command = find_whole_command(request_, "\n\nFiles here: a.py, test_a.py")
    subprocess.run(["sh", "-c", command or "true"], cwd=tmp_path, check=True)

    assert {name for name in names if (tmp_path / name).read_text() == "fetch()\n"} == changed
