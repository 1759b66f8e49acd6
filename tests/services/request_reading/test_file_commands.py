"""Files that are deleted, renamed, moved or copied by the command that the words say."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.file_commands import find_file_command

FILES = [
    *("Makefile", "a.py", "b.py", "app.ini", "docs/guide.md", "logo.png", "old.txt", "notes.txt", "one.csv", "two.csv"),
    *("run.sh", "stop.sh", "parser.py", "test_parser.py", "letters/draft.txt", "letters/spam.bak", "letters/junk.bak"),
]
PRIMED = f"\n\nFiles here: {', '.join(sorted(FILES))}"


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("Rename the script run.sh to start.sh.", "mv run.sh start.sh"),
        ("Rename run.sh to start.sh and make it executable", "mv run.sh start.sh"),
        ("rename our module parser.py into reader.py, then update the imports", "mv parser.py reader.py"),
        ("Rename the config file app.ini to settings.ini", "mv app.ini settings.ini"),
        ("Rename `run.sh` to `start.sh`.", "mv run.sh start.sh"),
        ("Rename the image logo.png to icon.png!", "mv logo.png icon.png"),
        ("Rename draft.txt to final.txt.", "mv letters/draft.txt letters/final.txt"),
        ("Rename the old Makefile to GNUmakefile.", "mv Makefile GNUmakefile"),
        ("The script run.sh should be called start.sh.", "mv run.sh start.sh"),
        ("The file letters/draft.txt should be called letters/final.txt. Rename it.",
         "mkdir -p letters && mv letters/draft.txt letters/final.txt"),
        ("run.sh must be renamed to start.sh", "mv run.sh start.sh"),
        ("Change the name of run.sh to start.sh.", "mv run.sh start.sh"),
        ("Change the name of the script run.sh to start.sh.", "mv run.sh start.sh"),
        ("Change run.sh's name to start.sh", "mv run.sh start.sh"),
        ("Give run.sh the name start.sh.", "mv run.sh start.sh"),
        ("Give the shell script run.sh the new name start.sh.", "mv run.sh start.sh"),
        ("run.sh has a bad name. Call it start.sh.", "mv run.sh start.sh"),
        ("The script run.sh is badly named, call it start.sh", "mv run.sh start.sh"),
        ("Take run.sh and call it start.sh.", "mv run.sh start.sh"),
        ("Call run.sh start.sh from now on.", "mv run.sh start.sh"),
        ("Move the page guide.md to docs/manual.md", "mkdir -p docs && mv docs/guide.md docs/manual.md"),
        ("Copy the config file app.ini to app.example.ini and change the port there.", "cp app.ini app.example.ini"),
        ("Make a copy of our script run.sh called start.sh.", "cp run.sh start.sh"),
        ("Copy run.sh and call it start.sh", "cp run.sh start.sh"),
        ("Back up app.ini as app.ini.bak.", "cp app.ini app.ini.bak"),
        ("Delete the script stop.sh.", "rm stop.sh"),
        ("Delete the image logo.png and the page guide.md.", "rm logo.png docs/guide.md"),
        ("Remove our module b.py, it is not used", "rm b.py"),
        ("Get rid of old.txt", "rm old.txt"),
        ("Delete all files ending in .bak in the folder letters.", "rm letters/*.bak"),
        ("Delete both CSV files.", "rm one.csv two.csv"),
        ("Create the folder tests and put test_parser.py there.", "mkdir -p tests && mv test_parser.py tests/"),
        ("Make a directory lib and move a.py and b.py into it.", "mkdir -p lib && mv a.py b.py lib/"),
        ("Create a new folder called lib, then move a.py, b.py and parser.py there",
         "mkdir -p lib && mv a.py b.py parser.py lib/"),
        ("Create a folder lib. Then copy the module a.py into that folder.", "mkdir -p lib && cp a.py lib/"),
        ("Create a folder tests for test_parser.py and move it there.", "mkdir -p tests && mv test_parser.py tests/"),
        ("Move a.py into a new folder lib", "mkdir -p lib && mv a.py lib/"),
        ("Move the test test_parser.py to the tests folder.", "mkdir -p tests && mv test_parser.py tests/"),
        ("Put logo.png into the folder img/.", "mkdir -p img && mv logo.png img/"),
        ("Put logo.png into docs.", "mkdir -p docs && mv logo.png docs/"),
        ("Put all .txt files into letters", "mkdir -p letters && mv *.txt letters/"),
        ("Move all CSV files into a new folder called measured.", "mkdir -p measured && mv *.csv measured/"),
        ("Move the two CSV files into a new folder called measured.", "mkdir -p measured && mv one.csv two.csv measured/"),
        ("Put every *.csv file into data/", "mkdir -p data && mv *.csv data/"),
        ("test_parser.py belongs in a folder tests.", "mkdir -p tests && mv test_parser.py tests/"),
    ],
)  # fmt: skip
def test_files_go_where_the_words_say(tmp_path: Path, request_: str, command: str) -> None:
    assert find_file_command(request_, PRIMED) == command
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    left = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert set(left) <= set(FILES)
    assert (len(set(left)) < len(FILES)) == command.startswith("rm ")


@pytest.mark.parametrize(
    "request_",
    [
        "Rename run.sh to stop.sh.",  # another file would be lost
        "Rename the function run to start in a.py.",
        "Rename a.txt to b.txt in the script run.sh.",
        "Rename run.sh to start.sh?",
        "How do I rename run.sh to start.sh?",
        "Delete the image logo.png from docs/guide.md.",
        "Remove the script run.sh and the page old.txt from Makefile.",
        "Remove a.py, b.py and run.sh from the list in Makefile.",
        "Delete old.txt if it is empty.",
        "Delete old.txt. But first copy it to new.txt.",
        "Delete old.txt unless run.sh needs it.",
        "Delete all .txt files. Leave notes.txt alone.",
        "Delete all .txt files except notes.txt.",
        "Delete the three CSV files.",
        "Delete all tests files",
        "Delete the first line of the file old.txt.",
        "Delete gone.txt.",
        "Remove the imports in the module a.py.",
        "Move the class Reader from parser.py to a.py.",
        "Move the constant in the module a.py into b.py.",
        "Copy the contents of old.txt into new.txt.",
        "Move a.py into the right folder.",
        "Move a.py into it.",
        "Move a.py to lib.",
        "Move a.py into the same folder as b.py",
        "Put the number of lines of old.txt into docs/n.txt.",
        "Put hello into old.txt.",
        "Create the folder tests and put a test for parser.py there.",
        "Create a folder docs and write guide.md there.",
        "The function in a.py should be called start.",
        "a.py should be called by run.sh.",
        "a.py has a bug. Call it b.py.x in the notes.",
        "old.txt names run.sh, call it start.sh",
        "Is run.sh to be called start.sh?",
        "Call run.sh and tell me what it prints.",
        "Change the name of the function in a.py to start.",
        "",
    ],
)
def test_other_words_move_nothing(request_: str) -> None:
    assert find_file_command(request_, PRIMED) == ""


def test_files_of_a_kind_need_the_whole_list() -> None:
    assert find_file_command("Delete all .csv files.", "\n\nFiles here: one.csv, two.csv") == "rm *.csv"
    assert find_file_command("Delete all .csv files.", "\n\nFiles here: one.csv, two.csv and 9 more") == ""
    assert find_file_command("Delete two.csv.", "\n\nFiles here: one.csv, two.csv and 9 more") == "rm two.csv"
    assert find_file_command("Delete two.csv.", "") == ""
