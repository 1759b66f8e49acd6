"""What a request asks for that has visibly not happened."""

import pytest

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.unfinished_work import Deeds, find_removed_names, find_unfinished

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


def test_names_that_are_to_go_are_found() -> None:
    assert "old" in find_removed_names("Remove the function old from a.py.")
    assert "describe" in find_removed_names("Move the function describe from a.py to b.py.")
    assert find_removed_names("Add a function new to a.py.") == set()
