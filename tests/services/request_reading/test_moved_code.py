"""Functions, classes and constants that go to another module by one command: the command is run, and the files judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ollm.services.request_reading.moved_code import find_move_command

WEATHER = '''"""Reads the weather."""

import csv
import math

COLD = 10


# Both ways.
def c_to_f(celsius):
    return celsius * 9 / 5 + 32


def f_to_c(fahrenheit):
    return math.floor((fahrenheit - 32) * 5 / 9)
    # rounded down


def report(celsius):
    return f"{c_to_f(celsius)} {csv.QUOTE_ALL}"


if __name__ == "__main__":
    print(report(100))
'''
LEFT = '''"""Reads the weather."""

import csv
import math
from units import c_to_f

COLD = 10


def report(celsius):
    return f"{c_to_f(celsius)} {csv.QUOTE_ALL}"


if __name__ == "__main__":
    print(report(100))
'''
UNITS = """import math


# Both ways.
def c_to_f(celsius):
    return celsius * 9 / 5 + 32


def f_to_c(fahrenheit):
    return math.floor((fahrenheit - 32) * 5 / 9)
    # rounded down
"""
ASKED = "Move c_to_f and f_to_c from weather.py to units.py."
TEXT = "def slug(text):\n    return text\n\n\ndef shout(text):\n    return text + '!'\n"


def move(folder: Path, asked: str, files: dict[str, str]) -> dict[str, str]:
    """The files after the command; the same ones where there is none."""
    command = find_move_command(asked, sorted(files), files.get)
    if not command:
        return files
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["bash", "-e", "-c", command], cwd=folder, check=True)
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(folder: Path, *command: str) -> str:
    return subprocess.run(
        [sys.executable, "-B", *command], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        "Move c_to_f and f_to_c out of weather.py into a new file units.py and import what weather.py needs from there. It must still run.",
        "please extract the functions `c_to_f` and `f_to_c` from `weather.py` into `units.py`",
        "weather.py is getting long. Move both functions c_to_f() and f_to_c() into their own module units.py.",
        "In weather.py, pull out c_to_f, f_to_c into a new module called units.py",
        "Split weather.py: put c_to_f and f_to_c into units.py",
        "Create a new file units.py and move c_to_f and f_to_c from weather.py into it. Then run python weather.py.",
        "c_to_f and f_to_c belong in units.py, not in weather.py. Move them there.",
        "The functions c_to_f and f_to_c should be moved from weather.py to units.py",
        "Pull c_to_f and the function f_to_c out of weather.py and put them into units.py.",
        "Split the functions c_to_f and its helper f_to_c out of weather.py into units.py",
        "I want to move c_to_f and f_to_c from weather.py into units.py.",
        "Let's move c_to_f and f_to_c to units.py",
        "I want c_to_f and f_to_c in units.py, not in weather.py.",
        "We need c_to_f and f_to_c moved out of weather.py into units.py.",
        "Take c_to_f(celsius) and f_to_c(fahrenheit) out of weather.py to units.py, then rename report to tell.",
    ],
)
def test_functions_go_with_what_they_need_and_are_imported_where_they_are_used(tmp_path: Path, asked: str) -> None:
    assert move(tmp_path, asked, {"weather.py": WEATHER}) == {"units.py": UNITS, "weather.py": LEFT}
    assert run(tmp_path, "weather.py") == "212.0 1\n"


@pytest.mark.parametrize(
    "asked",
    [
        "How do the functions c_to_f and f_to_c get from weather.py to units.py?",
        "Move c_to_f from weather.py to units.py?",
        "I want to move c_to_f from weather.py to units.py, how?",
        "I want a report in units.py.",
        "I need c_to_f in units.py.",  # which may be an import
        "Don't move c_to_f from weather.py to units.py.",
        "Run the tests. Move c_to_f from weather.py to units.py.",
        "If it is long, move c_to_f from weather.py to units.py.",
        "Move c_to_f from weather.py to units.py, but keep a wrapper.",
        "Move c_to_f from weather.py to units.py without importing it again.",
        "Move c_to_f from weather.py to units.py as to_f.",
        "Move c_to_f from weather.py to units.js.",
        "Move c_to_f from weather.py to weather.py.",
        "Move c_to_f from other.py to units.py.",
        "Move c_to_f and x_to_f from weather.py to units.py.",
        "Move celsius from weather.py to units.py.",
        "Move report from weather.py to units.py.",  # it needs c_to_f, which stays
        "Move weather.py to units.py.",
        "Put a function k_to_c into units.py.",
        "Copy c_to_f from weather.py to units.py.",
        "Move c_to_f from weather.py to units.py. Leave weather.py as it is.",
        "Move c_to_f from weather.py to __init__.py.",
        "Put report into units.py.",  # which may be a word
        "Move c_to_f from weather.py to my-units.py.",
    ],
)
def test_what_is_not_said_or_would_not_work_is_left_to_the_model(asked: str) -> None:
    assert find_move_command(asked, ["weather.py"], {"weather.py": WEATHER}.get) == ""


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("LIMIT = 3\n\n\ndef f(x):\n    return x < LIMIT\n\n\nprint(f(1))\n", "Move f from a.py to b.py."),
        ("def f():\n    return 1\n\n\ndef f():\n    return 2\n\n\nprint(f())\n", "Move f from a.py to b.py."),
        ("if 1:\n    def f():\n        return 1\nprint(f())\n", "Move f from a.py to b.py."),
        ("N = 1\n\n\ndef f():\n    global N\n    N += 1\n\n\nprint(f())\n", "Move N from a.py to b.py."),
        ("N = 1\nN += 1\nprint(N)\n", "Move N from a.py to b.py."),
        ("def f():\n    return __file__\n\n\nprint(f())\n", "Move f from a.py to b.py."),
        ("from os import *\n\n\ndef f():\n    return getcwd()\n\n\nprint(f())\n", "Move f from a.py to b.py."),
        (
            "try:\n    import json\nexcept ImportError:\n    json = None\n\n\ndef f():\n    return json\n\n\nprint(1)\n",
            "Move f from a.py to b.py.",
        ),
        ("def f():\n    return 1\n", "Move f from a.py to b.py."),  # nothing would be left
        ("def f(:\n    return 1\n", "Move f from a.py to b.py."),
        ("def f():\r\n    return 1\r\nprint(1)\r\n", "Move f from a.py to b.py."),
        ("def f(): return 1; print(2)\nx = 1; y = 2\n", "Move f from a.py to b.py."),
        ("class A:\n    def f(self):\n        return 1\n\n\nprint(1)\n", "Move f from a.py to b.py."),
        ("import math  # don't\n\n\ndef f():\n    return math.pi\n\n\nprint(f())\n", "Move f from a.py to there.py."),
    ],
)
def test_code_that_is_tied_to_its_module_stays(source: str, asked: str) -> None:
    there = "import os\n"

    assert find_move_command(asked, ["a.py", "there.py"], {"a.py": source, "there.py": there}.get) == ""


def test_a_module_that_is_there_gets_them_at_its_end_with_their_imports(tmp_path: Path) -> None:
    files = {"weather.py": WEATHER, "units.py": "import os\n\nPLACE = os.sep"}

    made = move(tmp_path, ASKED, files)

    head, body = UNITS.split("\n", 1)
    assert made == {"units.py": f"import os\n{head}\n\nPLACE = os.sep\n{body}", "weather.py": LEFT}
    assert run(tmp_path, "weather.py") == "212.0 1\n"


@pytest.mark.parametrize(
    "there",
    [
        "def c_to_f(x):\n    return x\n",
        "from weather import COLD\n",
        "import between\n",
        "math = 1\n",
        "from cmath import sqrt as math\n",
        "def broken(:\n",
    ],
)
def test_a_module_that_would_not_take_them_is_left_to_the_model(there: str) -> None:
    files = {"weather.py": WEATHER, "units.py": there, "between.py": "import weather\n"}

    assert find_move_command(ASKED, sorted(files), files.get) == ""
    assert find_move_command(ASKED, ["units.py", "weather.py"], {"weather.py": WEATHER}.get) == ""  # it cannot be read
    assert find_move_command(ASKED, ["weather.py"], files.get) == ""  # it is ignored, but there


def test_plain_imports_of_other_modules_follow(tmp_path: Path) -> None:
    files = {
        "text.py": TEXT,
        "main.py": "from text import slug\n\nprint(slug('a'))\n",
        "both.py": "import os\nfrom text import shout, slug\n\nprint(shout(slug('b')), os.sep)\n",
    }

    made = move(tmp_path, "Move slug from text.py to slugs.py", files)

    assert made["text.py"] == "def shout(text):\n    return text + '!'\n"
    assert made["main.py"] == "from slugs import slug\n\nprint(slug('a'))\n"
    assert made["both.py"].startswith("import os\nfrom text import shout\nfrom slugs import slug\n\n")
    assert run(tmp_path, "main.py") + run(tmp_path, "both.py") == "a\nb! /\n"


@pytest.mark.parametrize(
    "user",
    [
        "import text\n\nprint(text.slug('a'))\n",
        "from text import (\n    slug,\n)\n\nprint(slug('a'))\n",
        "from text import slug as s\n\nprint(s('a'))\n",
        "from text import *\n\nprint(slug('a'))\n",
        "def main():\n    from text import slug\n    print(slug('a'))\n\n\nmain()\n",
        "import importlib\n\nprint(importlib.import_module('text').slug('a'))\n",
    ],
)
def test_for_other_users_the_old_home_goes_on_having_them(tmp_path: Path, user: str) -> None:
    made = move(tmp_path, "Move slug from text.py to slugs.py", {"text.py": TEXT, "main.py": user})

    assert made["text.py"] == "from slugs import slug\n\n\ndef shout(text):\n    return text + '!'\n"
    assert made["main.py"] == user
    assert run(tmp_path, "main.py") == "a\n"


@pytest.mark.parametrize("said", [" Change nothing else.", " Don't touch main.py."])
def test_files_that_are_to_stay_do(tmp_path: Path, said: str) -> None:
    user = "from text import slug\n\nprint(slug('a'))\n"
    made = move(tmp_path, f"Move slug from text.py to slugs.py.{said}", {"text.py": TEXT, "main.py": user})

    assert made["main.py"] == user
    assert run(tmp_path, "main.py") == "a\n"


def test_a_module_that_looks_names_up_goes_on_having_them(tmp_path: Path) -> None:
    source = f"{TEXT}\n\nprint(globals()['slug']('a'))\n"

    made = move(tmp_path, "Move slug from text.py to slugs.py", {"text.py": source})

    assert made["text.py"].startswith("from slugs import slug\n")
    assert run(tmp_path, "text.py") == "a\n"


def test_a_constant_comes_right_behind_others(tmp_path: Path) -> None:
    files = {"a.py": "LIMIT = 3\nSIZE = 4\n\nprint(LIMIT + SIZE)\n", "conf.py": "NAME = 'x'\n"}

    made = move(tmp_path, "Move the constants LIMIT and SIZE from a.py into conf.py.", files)

    assert made["conf.py"] == "NAME = 'x'\nLIMIT = 3\nSIZE = 4\n"
    assert made["a.py"] == "from conf import LIMIT, SIZE\n\n\nprint(LIMIT + SIZE)\n"


def test_a_constant_in_the_wrong_place_goes_unless_two_modules_would_need_each_other(tmp_path: Path) -> None:
    files = {"a.py": "from limits import X\n\nMAX = 7\n\nprint(MAX, X)\n", "limits.py": "X = 3", "b.py": "import a\n"}
    asked = "MAX is in the wrong place. Put it into {} and import it from there."

    made = move(tmp_path, asked.format("limits.py"), files)

    assert made["limits.py"] == "X = 3\nMAX = 7\n"
    assert made["a.py"] == "from limits import X, MAX\n\nprint(MAX, X)\n"
    assert find_move_command(asked.format("b.py"), sorted(files), files.get) == ""


def test_a_class_and_a_constant_go_and_are_imported_as_asked(tmp_path: Path) -> None:
    source = (
        "#!/usr/bin/env python\nfrom dataclasses import dataclass\n\nLIMIT = 3\nNAME = 'x'\n\n\n@dataclass\nclass Book:\n"
        "    title: str\n\n    def cut(self):\n        return self.title[:LIMIT]\n\n\nprint(NAME)\n"
    )
    asked = "Move LIMIT and Book out of shop.py into models/book.py and import them in shop.py."

    made = move(tmp_path, asked, {"shop.py": source})

    assert made["models/book.py"].startswith(
        "from dataclasses import dataclass\n\nLIMIT = 3\n\n\n@dataclass\nclass Book:\n"
    )
    head = "#!/usr/bin/env python\nfrom dataclasses import dataclass\nfrom models.book import LIMIT, Book\n\n"
    assert made["shop.py"] == f"{head}NAME = 'x'\n\n\nprint(NAME)\n"
    assert run(tmp_path, "shop.py") == "x\n"


@pytest.mark.parametrize(
    ("head", "link"),
    [
        ("", "from .slugs import slug"),
        ("from .other import x\n\n\n", "from .slugs import slug"),
        ("from pkg.other import x\n\n\n", "from pkg.slugs import slug"),
    ],
)
def test_in_a_package_modules_are_named_as_others_are(tmp_path: Path, head: str, link: str) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/other.py": "x = 1\n",
        "pkg/text.py": f"{head}{TEXT}\n\nWORD = slug('a')\n",
        "main.py": "from pkg.text import WORD, slug\n\nprint(slug(WORD))\n",
    }

    made = move(tmp_path, "Move slug from pkg/text.py to pkg/slugs.py.", files)

    assert link in made["pkg/text.py"].split("\n")
    assert made["main.py"].startswith("from pkg.text import WORD\nfrom pkg.slugs import slug\n")
    assert run(tmp_path, "main.py") == "a\n"


@pytest.mark.parametrize(
    "asked", ["Move slug from pkg/text.py to slugs.py.", "Move slug from pkg/text.py to lib/slugs.py."]
)
def test_between_folders_it_is_left_to_the_model(asked: str) -> None:
    files = {"pkg/__init__.py": "", "pkg/text.py": TEXT}

    assert find_move_command(asked, sorted(files), files.get) == ""


def test_a_script_in_a_folder_without_a_sign_how_it_imports_is_left_to_the_model() -> None:
    files = {"tools/text.py": TEXT}

    assert find_move_command("Move slug from tools/text.py to tools/slugs.py.", sorted(files), files.get) == ""


def test_the_blank_lines_around_stay_as_many_as_they_were(tmp_path: Path) -> None:
    source = "import os\n\nA = 1\n\n\ndef f():\n    return os\n\n\ndef g_of():\n    return 1\n"

    made = move(tmp_path, "Move A from a.py to b.py.", {"a.py": source})
    assert made["a.py"] == source.replace("A = 1\n\n\n", "\n")
    made = move(tmp_path / "end", "Move `g_of` to b.py.", {"a.py": source})
    assert made["a.py"] == source.partition("\n\n\ndef g_of")[0] + "\n"


def test_comments_about_more_than_the_part_stay(tmp_path: Path) -> None:
    source = "# Tools for texts.\n\n# ---- names ----\ndef slug(text):\n    return text\n\n\nprint(slug('a'))\n"

    made = move(tmp_path, "Move slug from text.py to slugs.py.", {"text.py": source})

    assert (
        made["text.py"] == "# Tools for texts.\n\nfrom slugs import slug\n\n\n# ---- names ----\n\n\nprint(slug('a'))\n"
    )
    assert made["slugs.py"] == "def slug(text):\n    return text\n"
