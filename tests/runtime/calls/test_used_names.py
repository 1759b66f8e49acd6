"""Names that a block uses of a module from which it imports others."""

import pytest

from ollm.runtime.calls.used_names import import_tested_names, import_used_modules, import_used_names

FILES = {
    "text.py": "import re\n\nLIMIT = 3\n\n\ndef shout(text):\n    return text\n\n\nclass Page:\n    def turn(self):\n        pass\n",
    "lib/text.py": "def whisper(text):\n    return text\n",
    "bad.py": "def (",
    "own.py": "LIMIT = 5\n",
}


@pytest.mark.parametrize(
    ("path", "content", "made"),
    [
        (
            "test_text.py",
            "from text import shout\n\nprint(shout(LIMIT), Page())\n",
            "from text import shout, LIMIT, Page\n",
        ),
        ("test_text.py", "from text import shout  # it\n\nprint(LIMIT)\n", "from text import shout, LIMIT  # it\n"),
        ("lib/test_text.py", "from text import a\n\nwhisper(a)\n", "from text import a, whisper\n"),
    ],
)
def test_they_are_imported_too(path: str, content: str, made: str) -> None:
    assert import_used_names(path, content, FILES.get) == made + content.partition("\n")[2]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.md", "from text import shout\n\nLIMIT\n"),
        ("a.py", "from text import shout\n\nLIMIT = 4\nprint(LIMIT)\n"),
        ("a.py", "from text import shout\n\n\ndef f(LIMIT, *Page):\n    return LIMIT, Page\n"),
        ("a.py", "from text import *\n\nprint(LIMIT)\n"),
        ("a.py", "from other import *\nfrom text import shout\n\nprint(LIMIT)\n"),
        ("a.py", "from .text import shout\n\nprint(LIMIT)\n"),
        ("a.py", "from text import (\n    shout,\n)\n\nprint(LIMIT)\n"),
        ("a.py", "from text import shout\n\nprint(turn, re, other)\n"),
        ("a.py", "from text import (shout)\n\nprint(LIMIT)\n"),
        ("a.py", "from text import shout; a = 1\n\nprint(LIMIT)\n"),
        ("a.py", "from text import shout\n\nmatch 1:\n    case LIMIT:\n        print(LIMIT)\n"),
        ("own.py", "from text import shout\n\n\ndef main():\n    print(LIMIT)\n"),  # the file has one
        ("a.py", "from bad import shout\n\nprint(LIMIT)\n"),
        ("a.py", "from none import shout\n\nprint(LIMIT)\n"),
        ("a.py", "import text\n\nprint(LIMIT)\n"),
        ("a.py", "from text import shout\n\nprint(LIMIT\n"),
    ],
)
def test_other_blocks_stay_as_they_are(path: str, content: str) -> None:
    assert import_used_names(path, content, FILES.get) == content


COPY = "import os\n\n\ndef shout(text):\n    return text\n\n\ndef test_shout():\n    assert shout('a')\n"


def test_a_new_test_has_no_copy_of_the_function_it_tests() -> None:
    made = import_tested_names("test_text.py", COPY, {"shout": "text.py"}, FILES.get)

    assert made == "from text import shout\nimport os\n\n\ndef test_shout():\n    assert shout('a')\n"

    again = import_tested_names("test_text.py", f"from text import shout\n{COPY}", {"shout": "text.py"}, FILES.get)
    assert again == made
    files = {"a.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n"}
    two = import_tested_names(
        "test_a.py", f"{files['a.py']}\n\nprint(f() + g())\n", {"f": "a.py", "g": "a.py"}, files.get
    )
    assert two == "from a import f\nfrom a import g\n\n\nprint(f() + g())\n"


@pytest.mark.parametrize(
    ("path", "content", "places"),
    [
        ("test_text.py", COPY, {}),  # nobody said where it is to be
        ("test_text.py", COPY, {"shout": "own.py"}),  # it is not there yet
        ("test_text.py", COPY, {"shout": "lib/text.py"}),
        ("test_text.py", COPY, {"shout": "test_text.py"}),
        ("test_text.py", COPY, {"shout": "none.py"}),
        ("test_text.py", COPY.replace("def shout", "@cache\ndef shout"), {"shout": "text.py"}),
        ("test_text.py", COPY.replace("text):", "text:"), {"shout": "text.py"}),
        ("test_text.py", '"""Tests."""\n' + COPY, {"shout": "text.py"}),
        ("tests/test_text.py", COPY, {"shout": "text.py"}),
        ("main.py", COPY, {"shout": "text.py"}),
        ("test_old.py", COPY, {"shout": "text.py"}),  # what is there may have its own
    ],
)
def test_other_copies_stay(path: str, content: str, places: dict[str, str]) -> None:
    assert import_tested_names(path, content, places, {**FILES, "test_old.py": "x = 1\n"}.get) == content


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("def f(t):\n    return t\n", "def f(t):\n    return re.sub('a', '', t)\n", "import re\n\n\n"),
        ("x = 1\n", "import os\n\nx = json.dumps(os.sep)\n", "import json\n"),
        ("x = 1\n", "x = json.loads('1')\n", "import json\n\n"),
        ("", "@functools.cache\ndef f():\n    return 1\n", "import functools\n\n\n"),
        ("y = re.x\n", "y = re.x\nz = 1\n", ""),
        ("", "import re\n\nre.sub('', '', '')\n", ""),
        ("", "from os import *\n\nre.sub('', '', '')\n", ""),
        ("", "def f(re):\n    return re.x\n", ""),
        ("", "print(helper.x)\n", ""),
        ("", "print(json)\n", ""),
    ],
)
def test_a_module_of_the_library_that_is_used_is_imported(before: str, after: str, wanted: str) -> None:
    assert import_used_modules("a.py", before, after) == wanted + after
    assert import_used_modules("a.txt", before, after) == after


def test_imports_come_behind_the_heading_of_a_module() -> None:
    head = '"""About."""\n\nfrom __future__ import annotations\n\n'

    assert import_used_modules("a.py", "", f"{head}x = re.M\n") == f"{head}import re\n\nx = re.M\n"
