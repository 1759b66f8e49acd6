"""What a request asks for that has visibly not happened."""

import pytest

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.deeds import Deeds
from ollm.services.request_reading.unfinished_work import find_kept_tests, find_unfinished, is_computed_into_file

FILES = ("add.py", "main.py", "limits.py", "src/app.py", "test_add.py", "data.csv")


@pytest.mark.parametrize(
    ("request_", "deeds", "left"),
    [
        ("Change x in add.py to 2.", Deeds(), ["Now change add.py."]),
        ("Change x in add.py to 2.", Deeds(changed=("add.py",)), []),
        ("Rename a to b in add.py and main.py.", Deeds(changed=("add.py",)), ["Now change main.py too."]),
        ("Rename a to b in add.py, main.py and app.py.", Deeds(changed=("add.py", "main.py", "src/app.py")), []),
        ("Fix add.py, run python main.py and write what it prints into out.txt.", Deeds(changed=("add.py",)),
         ["Now run python main.py.", "out.txt does not exist. Now write out.txt."]),
        ("Run python main.py and tell me what it prints.", Deeds(commands=(("python main.py", 0),)), []),
        ("Write a script fib.py and run it.", Deeds(), ["fib.py does not exist. Now write fib.py.", "Now run python fib.py."]),
        ("Add up the column a in data.csv and write the sum into sum.txt.", Deeds(changed=("sum.txt",)), []),
        ("python test_add.py fails. Fix add.py.", Deeds(), ["Now run python test_add.py.", "Now change add.py."]),
        ("python test_add.py fails. Fix add.py.",
         Deeds(changed=("add.py",), commands=(("python test_add.py", 1),)), ["Now run python test_add.py."]),
        ("python test_add.py fails. Fix add.py.",
         Deeds(changed=("add.py",), since_change=(("python test_add.py", 1),)), ["python test_add.py still fails: mend it."]),
        ("python test_add.py fails. Fix add.py.",
         Deeds(changed=("add.py",), since_change=(("python test_add.py", 0),)), []),
        ("Move MAX from limits.py to add.py.", Deeds(changed=("add.py", "limits.py"), texts={"limits.py": "MAX = 1\n"}),
         ["Now remove MAX from limits.py."]),
        ("Move the function f from limits.py to add.py.",
         Deeds(changed=("add.py", "limits.py"), texts={"limits.py": "def f():\n    pass\n"}),
         ["f is still in limits.py: remove it there."]),
        ("Rename load to fetch in add.py and main.py.",
         Deeds(changed=("add.py",), texts={"add.py": "fetch()", "main.py": "from add import load"}),
         ["main.py still has load. Now replace load by fetch in main.py."]),
        ("Rename the function load to fetch in add.py.",
         Deeds(changed=("add.py",), texts={"add.py": "def fetch():  # there is much to load\n    pass\n"}), []),
        ("Raise the version from 1.4.0 to 1.5.0 in add.py.", Deeds(texts={"add.py": "V = '1.4.0'"}),
         ["add.py still has 1.4.0. Now replace 1.4.0 by 1.5.0 in add.py."]),
        ("Set A_PORT to 90 and B_PORT to 91 in add.py.",
         Deeds(changed=("add.py",), texts={"add.py": "A_PORT = 90\nB_PORT = 7\n"}), ["Now set B_PORT to 91 in add.py."]),
        ("The total in add.py is wrong. Fix it and run python main.py.", Deeds(),
         ["Now change add.py.", "Now run python main.py."]),
        ("Give main.py an option --x, then run python main.py --x.",
         Deeds(changed=("main.py",), commands=(("python main.py --x", 2),), since_change=(("python main.py --x", 2),)),
         ["python main.py --x fails. Now mend main.py."]),
        ("Write a script fib.py that prints ten numbers, and run it.",
         Deeds(changed=("fib.py",), commands=(("python fib.py", 0),), since_change=(("python fib.py", 0),),
               silent=("python fib.py",)), ["fib.py prints nothing. Now mend fib.py."]),
        ("Write a script fib.py and run python fib.py.", Deeds(changed=("fib.py",), commands=(("python fib.py", 2),)),
         ["Now run python fib.py."]),
        ("Add up the column a in data.csv and write the sum into sum.txt.",
         Deeds(changed=("sum.txt",), commands=(("awk x", 0),), texts={"sum.txt": ""}),
         ["sum.txt is empty. Now write sum.txt with a command."]),
        ("Run python main.py and write its output into out.txt.", Deeds(commands=(("python main.py", 0),)),
         ["out.txt does not exist. Now write the output of python main.py into out.txt."]),
        ("How many rows has data.csv? Put the number into n.txt.", Deeds(),
         ["n.txt does not exist. Now write n.txt with a command."]),
        ("add.py should raise an error for a negative amount.", Deeds(), ["Now change add.py."]),
        ("Make a folder x and move main.py into it.", Deeds(), ["Nothing has been changed. Now do it."]),
        ("Add a key to add.py.", Deeds(commands=(("sed -i 's/a/b/' add.py", 0),)), ["Now change add.py."]),
        ("main.py is red. Please repair add.py.",
         Deeds(changed=("add.py",), texts={"add.py": "x"}, since_change=(("python main.py", 1),)),
         ["python main.py still fails. Now mend add.py."]),
        ("Delete old.txt.", Deeds(commands=(("rm old.txt", 0),)), []),
        ("Delete old.txt.", Deeds(), ["Nothing has been changed. Now do it."]),
        ("What does add.py do?", Deeds(), []),
        ("test_add.py does not pass. Make it pass, but don't edit the test.", Deeds(meant=("add.py",)),
         ["Now run python test_add.py.", "Now change add.py."]),
        ("Rename load to fetch everywhere except in main.py.",
         Deeds(changed=("add.py",), texts={"add.py": "fetch()", "main.py": "load()"}), []),
        ("Don't touch main.py, change add.py.", Deeds(), ["Now change add.py."]),
        ("Remove everything from data.csv.", Deeds(changed=("data.csv",), texts={"data.csv": ""}), []),
        ("The total in add.py should be 3.", Deeds(meant=("main.py",)), ["Now change add.py."]),
        ("How many lines has data.csv?", Deeds(), []),
        ("Explain how main.py changes the values in add.py.", Deeds(), []),
    ],
)  # fmt: skip
def test_what_is_left_is_said_and_nothing_else(request_: str, deeds: Deeds, left: list[str]) -> None:
    assert find_unfinished(request_, deeds, FILES) == left


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("In settings.py set LIMIT to 3", True),
        ("Please fix the typo", True),
        ("Find the bug and fix it", True),
        ("Which files use LIMIT?", False),
        ("Tell me what add.py does", False),
    ],
)
def test_a_wish_for_a_change_is_told_from_a_question(text: str, wanted: bool) -> None:
    assert asks_for_change(text) is wanted


@pytest.mark.parametrize(
    ("request_", "deeds", "left"),
    [
        (
            "How many rows has data.csv?",
            Deeds(commands=(("wc x", 0),), silent=("wc x",)),
            ["The command printed nothing. Now find it with a command."],
        ),
        ("How many rows has data.csv?", Deeds(commands=(("wc x", 1),), silent=("wc x",)), []),
        ("How many rows has data.csv?", Deeds(commands=(("wc x", 0),)), []),
        (
            "Write a script fib.py that prints ten numbers, and run it.",
            Deeds(changed=("fib.py",), commands=(("python fib.py", 0),), silent=("python fib.py",)),
            ["Now run python fib.py."],
        ),
        (
            "Write a script fib.py that prints ten numbers, and run it.",
            Deeds(
                changed=("fib.py",),
                commands=(("python fib.py", 0), ("ls", 1)),
                silent=("python fib.py",),
                since_change=(("python fib.py", 0),),
            ),
            ["fib.py prints nothing. Now mend fib.py."],
        ),
        (
            "Write fib.py and main2.js, then run main2.js.",
            Deeds(),
            [
                "fib.py does not exist. Now write fib.py.",
                "main2.js does not exist. Now write main2.js.",
                "Now run node main2.js.",
            ],
        ),
        ("Rename add.py to sum.py.", Deeds(), ["sum.py does not exist. Now do it."]),
        ("Copy add.py to sum.py.", Deeds(), ["sum.py does not exist. Now do it."]),
        (
            "Run python main.py and write its output into out.txt.",
            Deeds(commands=(("python main.py > /dev/null", 0), ("ls", 0))),
            ["out.txt does not exist. Now write the output of python main.py into out.txt."],
        ),
        (
            "Run python main.py and write its output into out.txt.",
            Deeds(commands=(("cat <<X\ny", 0),)),
            ["Now run python main.py.", "out.txt does not exist. Now write out.txt."],
        ),
        (
            "python main.py crashes. Find out why and fix it.",
            Deeds(),
            ["Now run python main.py.", "Now change main.py."],
        ),
        (
            "python main.py crashes. Find out why and fix it.",
            Deeds(changed=("add.py",), since_change=(("python main.py", 1),), texts={"add.py": "x"}),
            ["python main.py still fails: mend it."],
        ),
        (
            "main.py fails. Fix it.",
            Deeds(changed=("main.py",), since_change=(("python main.py", 1),), texts={"main.py": "x"}),
            ["python main.py still fails. Now mend main.py."],
        ),
        (
            "test_add.py fails. Fix it.",
            Deeds(changed=("add.py",), since_change=(("python test_add.py", 1),)),
            ["python test_add.py still fails: mend it."],
        ),
        ("Run main.py and test_add.py.", Deeds(commands=(("python main.py", 0),)), []),
        (
            "Run main.py. Change add.py.",
            Deeds(changed=("add.py", "src/app.py"), since_change=(("python main.py", 1),)),
            ["python main.py fails: mend it."],
        ),
        (
            "Run main.py. Change add.py.",
            Deeds(changed=("add.py",), since_change=(("cat main.py", 1),)),
            ["Now run python main.py."],
        ),
        ("Set A to 90 in add.py and main.py.", Deeds(changed=("add.py", "main.py"), texts={"add.py": "A = 1"}), []),
        ("Set A to 90 in app.py.", Deeds(changed=("src/app.py",), texts={"src/app.py": "A: 1"}), []),
        ("Sort the lines in data.csv.", Deeds(), ["Now change data.csv."]),
        ("Read the numbers from data.csv and add a total to add.py.", Deeds(), ["Now change add.py."]),
        ("Move f from limits.py to add.py.", Deeds(), ["Now change limits.py.", "Now change add.py."]),
        ("Please improve main.py.", Deeds(), ["Now change main.py."]),
        (
            "create a file .editorconfig with a section",
            Deeds(),
            [".editorconfig does not exist. Now write .editorconfig."],
        ),
        (
            "Move f into main.py and delete add.py.",
            Deeds(changed=("main.py",)),
            ["add.py is still there. Now run rm add.py."],
        ),
        ("Move f into main.py and delete add.py from the list.", Deeds(changed=("main.py",)), []),
        (
            "Write the number of lines in add.py to c.txt.",
            Deeds(),
            ["c.txt does not exist. Now write c.txt with a command."],
        ),
        ("Change the host in add.py to db.internal.", Deeds(), ["Now change add.py."]),
        ("Make PORT configurable via sys.argv.", Deeds(meant=("main.py",)), ["Now change main.py."]),
        ("Add a check: if data.csv is missing print it.", Deeds(), ["Nothing has been changed. Now do it."]),
        ("data.csv has two names. Remove one.", Deeds(changed=("b.txt",)), ["Now change data.csv too."]),
        ("main.py should print 2.", Deeds(changed=("add.py",)), []),
        ("get rid of data.csv", Deeds(), ["Nothing has been changed. Now do it."]),
        ("Reverse data.csv and save it as b.csv", Deeds(), ["b.csv does not exist. Now write b.csv."]),
        ("Check if test_add.py passes.", Deeds(), ["Now run python test_add.py."]),
        ("Is test_add.py passing?", Deeds(commands=(("python test_add.py", 0),)), []),
        ("make add.py print hello", Deeds(), ["Now change add.py."]),
        ("Make add.py executable.", Deeds(), ["Now change add.py."]),
        ("Make add.py executable.", Deeds(commands=(("ls && chmod +x add.py", 0),)), []),
        ("Convert data.csv to JSON and save it as a.json.", Deeds(), ["a.json does not exist. Now write a.json."]),
        (
            "count the words in main.py and put the count in c.txt",
            Deeds(),
            ["c.txt does not exist. Now write c.txt with a command."],
        ),
        ("I need a script down.py that counts.", Deeds(), ["down.py does not exist. Now write down.py."]),
        ("Copy all lines of add.py with FAULT to b.log.", Deeds(), ["b.log does not exist. Now do it."]),
        (
            "change the label from 'Send' to 'Submit order' (main.py)",
            Deeds(texts={"main.py": "x = 'Send'", "add.py": "y = 'Send'"}),
            ["main.py still has Send. Now replace Send by Submit order in main.py."],
        ),
        ("Improve it.", Deeds(meant=("main.py",)), ["Now change main.py."]),
        ("Improve it.", Deeds(meant=("main.py", "add.py")), ["Nothing has been changed. Now do it."]),
        ("Improve it.", Deeds(commands=(("git mv a b", 0),)), []),
        ("Improve it.", Deeds(commands=(("git mv a b", 1),)), ["Nothing has been changed. Now do it."]),
        ("Write an empty file e.txt.", Deeds(changed=("e.txt",), texts={"e.txt": " \n"}), []),
        (
            "Write notes into e.txt.",
            Deeds(changed=("e.txt",), texts={"e.txt": " \n"}),
            ["e.txt is empty. Now write e.txt with a command."],
        ),
        ("Write notes into e.txt.", Deeds(changed=("e.txt",)), []),
        ("Why does build.sh fail? Run it and find out why.", Deeds(), ["Now run sh build.sh."]),
        (
            "Rename load to fetch.",
            Deeds(changed=("add.py",), texts={"add.py": "load()", "main.py": "load()"}),
            [
                "add.py still has load. Now replace load by fetch in add.py.",
                "main.py still has load. Now replace load by fetch in main.py.",
            ],
        ),
    ],
)
def test_what_is_left_of_commands_and_files(request_: str, deeds: Deeds, left: list[str]) -> None:
    assert find_unfinished(request_, deeds, FILES) == left


def test_a_number_that_goes_into_a_file_and_tests_that_stay() -> None:
    assert is_computed_into_file("How many rows has data.csv? Put the number into n.txt.")
    assert not is_computed_into_file("Write a script s.py that counts the rows and put the number into n.txt.")
    assert not is_computed_into_file("Put hello into n.txt.")
    assert find_kept_tests("test_add.py fails. Fix add.py.") == {"test_add.py"}
    assert find_kept_tests("main.py fails. Fix main.py.") == set()


@pytest.mark.parametrize(
    "request_",
    [
        "Change add.py. Do not delete the folder src.",
        "In add.py write a function that can delete the src folder.",
        "Write a script clean.py to delete the folder src.",
        "Write into README.md: delete the src folder.",
        "Change add.py. Delete data.csv, but make a backup first.",
        "Change add.py. Delete data.csv after copying it to old.csv.",
        "Document in README.md: to move add from add.py to main.py, change both.",
        "Move add from add.py to main.py but keep it in add.py too.",
        "Remove the Usage section from README.md and add it to page.md.",
        "Add to README.md: mark buy milk as done in todo.md.",
        "Add a task to todo.md: remove web from c.yml",
        "Yesterday I set the port of web in c.yml to 81. Undo that.",
    ],
)
def test_nothing_is_insisted_on_that_is_forbidden_dictated_or_comes_later(request_: str) -> None:
    texts = {
        "add.py": "def add():\n    return 1\n",
        "README.md": "# App\n\n## Usage\n\nrun\n",
        "todo.md": "- [ ] buy milk\n",
        "c.yml": "services:\n  web:\n    port: 80\n  db:\n    port: 1\n",
    }
    deeds = Deeds(changed=("add.py",), texts=texts, before={"add.py": "x = 1\n"})

    left = " ".join(find_unfinished(request_, deeds, (*FILES, *texts)))

    assert not [word for word in ("rm ", "sed ", "remove", "still") if word in left], left


def test_a_folder_and_a_file_that_are_to_go_are_named() -> None:
    deeds = Deeds(changed=("add.py",))

    assert find_unfinished("Change add.py, then delete the src folder.", deeds, FILES) == [
        "The folder src is still there. Now run rm -r src."
    ]
    assert find_unfinished("Change add.py and delete data.csv.", deeds, FILES) == [
        "data.csv is still there. Now run rm data.csv."
    ]
