"""The command that sorts the imports of a module."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.import_order import find_import_sort

TEXT = '"""Tools."""\n\nimport sys\nimport json\nimport os.path\nimport csv\n\n\nprint(sys, json, os, csv)\n'
SORTED = TEXT.replace(
    "import sys\nimport json\nimport os.path\nimport csv", "import csv\nimport json\nimport os.path\nimport sys"
)


def show(text: str) -> str:
    return f"\n\nFiles here: tools.py\n\ntools.py:\n```\n{text.rstrip()}\n```"


@pytest.mark.parametrize(
    "asked",
    [
        "sort the imports in tools.py alphabetically",
        "Sort the imports in tools.py.",
        "please order all the import statements of `tools.py` by name",
        "Put the imports in tools.py into alphabetical order.",
        "Put the imports in alphabetical order in tools.py",
        "Alphabetize the imports at the top of tools.py!",
    ],
)
def test_imports_are_sorted(tmp_path: Path, asked: str) -> None:
    (tmp_path / "tools.py").write_text(TEXT)

    subprocess.run(["bash", "-e", "-c", find_import_sort(asked, show(TEXT))], cwd=tmp_path, check=True)

    assert (tmp_path / "tools.py").read_text() == SORTED


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Sort the imports in tools.py by length.", TEXT),
        ("Sort the imports in tools.py in groups: standard library first.", TEXT),
        ("Sort the imports in tools.py and remove unused ones.", TEXT),
        ("Put the imports in tools.py.", TEXT),
        ("Sort the imports in other.py.", TEXT),
        ("Sort the lines in tools.py.", TEXT),
        ("Don't sort the imports in tools.py.", TEXT),
        ("How do I sort the imports in tools.py?", TEXT),
        ("Sort the imports in tools.py.", SORTED),
        ("Sort the imports in tools.py.", TEXT.replace("import json", "from json import dumps")),
        ("Sort the imports in tools.py.", TEXT.replace("import json", "import json as j")),
        ("Sort the imports in tools.py.", TEXT.replace("import json", "import json\n\n")),
        ("Sort the imports in tools.py.", TEXT.replace("import json", "import json  # first")),
        ("Sort the imports in tools.py.", TEXT.replace("import json", "import sys")),
        ("Sort the imports in tools.py.", "x = 1\n"),
    ],
)
def test_what_is_said_or_written_in_another_way_is_left_to_the_model(asked: str, text: str) -> None:
    assert find_import_sort(asked, show(text)) == ""
