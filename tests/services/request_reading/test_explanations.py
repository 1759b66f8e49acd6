"""Whether the blocks of an answer are meant to be carried out."""

import pytest

from ollm.services.request_reading.explanations import asks_how, is_looking, is_meant, is_question


@pytest.mark.parametrize(
    "asked",
    [
        "How do I delete a.py?",
        "Explain what happens if I stop it and then delete the log.",
        "Could you explain to me how one would delete a.py?",
        "Explain how to set x",
        "What is the command to list files?",
        "Show me the command that deletes a.py",
        "Give me an example of a for loop in bash",
        "What would happen if I ran rm a.py?",
        "What is the difference between rm and unlink?",
        "so how does one delete a.py",
        "Hey, how to remove a.py",
        "I want to know the command to delete a.py",
    ],
)
def test_an_explanation_is_never_carried_out(asked: str) -> None:
    assert asks_how(asked)
    assert not is_meant(asked, "shell", "ls")
    assert not is_meant(asked, "file", "x = 1")


@pytest.mark.parametrize(
    "asked",
    [
        "What does a.py do?",
        "What would rm a.py do?",
        "Wie lösche ich a.py?",
        "Review a.py and suggest improvements, but do not change anything.",
        "Explain what `rm a.py` does.",
        "Find the bug in a.py; change nothing.",
        "What does delete_all do? Do not change anything.",
        "In which format must the export be? I told you earlier.",
        "Please keep in mind: the export must be in the format Parquet.",
        "Give three names for a function that removes duplicates from a list.",
        "Which port does server.ini set?",
        "Review a.py, but make no changes.",
        "Propose a name for the function, do not rename it yet.",
        "Can I delete old.txt?",
        "Should parse() return None?",
        "Give me a summary of a.py.",
        "I have renamed foo to bar. What else uses foo?",
        "I forgot how one deletes a file in bash",
        "run a.py after I confirm",
        "delete a.py but ask me first",
        "delete a.py later",
        "Kannst du mir erklären wie man a.py löscht",
        "Erklär mir bitte, wie ich a.py lösche",
        "whats the best way of getting rid of a.py",
        "I'm curious about rm -rf",
        "Could you remind me what the command for deleting a.py is",
        "what do i type to remove a.py",
        "Is there a command to delete a.py",
        "help me understand how to remove a.py",
        "I don't know how to delete a.py.",
        "peux-tu m'expliquer comment supprimer a.py",
        "I forgot what port is in conf.ini, look it up",
    ],
)
def test_a_question_lets_look_and_changes_nothing(asked: str) -> None:
    assert is_question(asked)
    assert is_meant(asked, "shell", "cat a.py | grep x")
    assert not is_meant(asked, "shell", "rm a.py")
    assert not is_meant(asked, "file", "x = 1")


@pytest.mark.parametrize(
    "asked",
    [
        "Delete a.py",
        "Do it.",
        "would be nice if a.py also printed the level",
        "I don't know how this broke. Fix a.py",
        "The job in a.py should start 5 minutes later.",
        "Delete a.py only if nothing imports it.",
        "I'm not sure what is wrong: fix a.py",
        "I have no idea why test_a.py fails, please fix it",
        "I don't remember what the port is, set it to 80",
        "I forgot what I named it but rename the function in a.py to foo",
        "I'm not sure what version is in setup.cfg but it should be 2.0",
        "Hey, could you delete a.py?",
        "ok so delete a.py",
        "Why is debug false? It should be true.",
        "Print 'bye' at the end of main().",
        "Give me a file a.txt that contains hello.",
        "Can you delete a.py?",
        "Kannst du a.py löschen?",
        "Run python a.py and tell me what it prints.",
        "How many lines of a.log have WARN? Put the number into n.txt.",
        "build.sh should print built, but it fails. Run it, find out why and fix it.",
        "Fix a.py without running it.",
        "Is a.py broken? Fix it.",
        "Give the function f of a.py a parameter n.",
        "Remember to add a test to a.py.",
        "In a.py change the value of LIMIT to 904. Change nothing else.",
        "Rename f to g in a.py. Don't change anything else.",
        "The test is right, do not change it. Fix a.py.",
        "Add a function twice to a.py without changing the code of the others.",
        "It dies when it gets no numbers. Can you make it print 0 in that case?",
        "Could someone fix the import in a.py?",
        "Can we have a --verbose flag in a.py?",
        "How about adding a retry to fetch()?",
        "Is it possible to change the port to 9000? Please do.",
        "Explain what a.py does in a comment at its top.",
        "Summarize notes.md into a.py",
        "List all marks in a.py (create it).",
        "Give the parameter name of greet in a.py the default value 3.",
    ],
)
def test_work_is_carried_out(asked: str) -> None:
    assert is_meant(asked, "file", "x = 1")
    assert not is_question(asked)


def test_what_is_not_to_be_run_is_not() -> None:
    assert not is_meant("Fix a.py without running it.", "shell", "python a.py")
    assert is_meant("Fix a.py without running it.", "shell", "cat a.py")
    assert is_meant("Run test_a.py. Does it pass? Don't fix anything.", "shell", "python test_a.py")
    assert not is_meant("Run test_a.py. Does it pass? Don't fix anything.", "shell", "rm a.py")
    assert is_meant("Fix a.py.", "shell", "python a.py")
    assert not is_meant("What does python wipe.py do?", "shell", "python wipe.py")
    assert is_meant("Run greet.sh with the argument Zoe. What does it print?", "shell", "sh greet.sh Zoe")
    assert is_meant("What does python main.py print?", "shell", "python main.py")
    assert is_meant("What is the output of main.py?", "shell", "python main.py")


@pytest.mark.parametrize(
    ("command", "looks"),
    [
        ("cat a.py", True),
        ("grep -rn 'a > b' . | wc -l", True),
        ("for f in *.py; do wc -l $f; done", True),
        ("find . -name '*.py' 2>/dev/null | xargs wc -l", True),
        ("awk -F, '{s+=$2} END {print s}' a.csv", True),
        ("sed -n 1,5p a.py", True),
        ("git log --oneline", True),
        ("python -c 'print(1)'", True),
        ("cat a.py > b.py", False),
        ("sed -i s/a/b/ a.py", False),
        ("find . -delete", False),
        ("git checkout a.py", False),
        ("ls && rm a.py", False),
        ("grep $(rm a.py) b", False),
        ("for i in 1 2; do rm a.py; done", False),
        ("python -c 'import os; os.remove(\"a.py\")'", False),
        ("ls | xargs rm", False),
    ],
)
def test_commands_that_only_look(command: str, looks: bool) -> None:
    assert is_looking(command, runs=True) is looks


def test_an_answer_to_a_question_overwrites_nothing_that_was_shown() -> None:
    asked = "In which city is the second data centre?"

    assert is_meant(asked, "file", "print(1)", "look.py", "Files: a.py b.py")
    assert not is_meant(asked, "file", "x = 1", "a.py", "Files: a.py b.py")


def test_a_file_that_an_order_for_words_names_and_that_is_not_there_is_written() -> None:
    shown = "List it.\n\nFiles here: a.py, notes.txt\n\na.py:\n```\nx = 1\n```"

    assert is_meant("List the python files in files.txt", "shell", "ls *.py > files.txt", shown=shown)
    assert is_meant("Give me a summary of a.py in summary.md", "file", "text", "summary.md", shown)
    assert not is_meant("List the python files in notes.txt", "shell", "ls *.py > notes.txt", shown=shown)
    assert not is_meant("List the python files in files.txt", "shell", "rm a.py > files.txt", shown=shown)
    assert not is_meant("Is there a list in files.txt?", "shell", "ls *.py > a.py", shown=shown)
    assert not is_meant("List the files of files.txt. Do not change anything.", "file", "x", "files.txt", shown)


@pytest.mark.parametrize(("body", "meant"), [("ls > files.txt", True), ("ls > a.py", False), ("ls", True)])
def test_a_list_goes_into_the_file_that_is_asked_for_and_into_no_other(body: str, meant: bool) -> None:
    assert is_meant("List the modules in files.txt.", "shell", body, shown="Files here: a.py, b.py") is meant
