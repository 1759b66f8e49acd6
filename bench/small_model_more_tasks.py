"""More small tasks: of five steps and more, and ones that were held back.

`HELD` was written before any result of it was seen, is run once with what was finished, and nothing is changed because
of it.
"""

from __future__ import annotations

from bench.small_model_task_list import TASKS, Task, compact, every, gone, holds, prints, says

LONG = (
    Task(
        name="fix, test and note the result",
        asked="Read add.py, fix the bug in it, run python test_add.py, then write what it prints into RESULT.txt.",
        files={
            "add.py": "def add(a, b):\n    return a - b\n",
            "test_add.py": "from add import add\n\nassert add(2, 3) == 5\nprint('passed', add(40, 2))\n",
        },
        done=every(holds("add.py", "a + b"), holds("test_add.py", "== 5"), holds("RESULT.txt", "passed 42")),
    ),
    Task(
        name="find, rename, run and note the output",
        asked="Find the file that defines the function compute_total. Rename the function to total there and in "
        "main.py. Then run python main.py and write its output into out.txt.",
        files={
            "main.py": "from prices import compute_total\n\nprint('sum', compute_total([19, 23]))\n",
            "prices.py": "def compute_total(items):\n    return sum(items)\n",
            "names.py": "NAMES = ['a', 'b']\n",
        },
        done=every(holds("prices.py", "def total"), prints("main.py", "sum 42"), holds("out.txt", "sum 42")),
    ),
    Task(
        name="follow a trail of files",
        asked="Read start.txt. It names another file: read that too, and so on, until you find a number. Write the "
        "number into answer.txt, then say it.",
        files={
            "start.txt": "Go on in alpha.txt.\n",
            "alpha.txt": "Go on in beta.txt.\n",
            "beta.txt": "The number is 7316.\n",
        },
        done=every(holds("answer.txt", "7316"), says("7316")),
    ),
    Task(
        name="raise a version in three files",
        asked="Change the version from 1.4 to 1.5 in app.py, in README.md and in setup.cfg. Then run python app.py and "
        "say what it prints.",
        files={
            "app.py": "VERSION = '1.4'\nprint('running', VERSION)\n",
            "README.md": "# App\n\nThis is version 1.4.\n",
            "setup.cfg": "[metadata]\nversion = 1.4\n",
        },
        done=every(
            holds("app.py", "1.5"),
            holds("README.md", "version 1.5"),
            holds("setup.cfg", "version = 1.5"),
            says("running 1.5"),
        ),
    ),
)
HELD = (
    Task(
        name="list files",
        asked="Which Python files are in the folder src? Name them.",
        files={"src/reader.py": "", "src/writer.py": "", "src/notes.md": "", "main.py": ""},
        done=says("reader.py", "writer.py"),
    ),
    Task(
        name="delete a file",
        asked="Delete the file old.log.",
        files={"old.log": "x\n", "new.log": "y\n"},
        done=every(gone("old.log"), holds("new.log", "y")),
    ),
    Task(
        name="change a value in JSON",
        asked="Set timeout to 30 in settings.json.",
        files={"settings.json": '{\n  "retries": 3,\n  "timeout": 5\n}\n'},
        done=every(compact("settings.json", '"timeout":30'), compact("settings.json", '"retries":3')),
    ),
    Task(
        name="write a script and run it",
        asked="Write a Python script count.py that prints the numbers from 1 to 5, one on each line, and run it.",
        files={"README.md": "# Scripts\n"},
        done=prints("count.py", "1 2 3 4 5"),
    ),
    Task(
        name="mend a crash and note the output (five steps)",
        asked="python greet.py crashes. Run it, read the file, fix it, run it again and write what it prints into "
        "OUT.txt.",
        files={"greet.py": "name = 'Ada'\nprint('Good morning, ' + nme)\n"},
        done=every(prints("greet.py", "Good morning, Ada"), holds("OUT.txt", "Good morning, Ada")),
    ),
)
SETS = {"usual": TASKS, "long": LONG, "held": HELD}
