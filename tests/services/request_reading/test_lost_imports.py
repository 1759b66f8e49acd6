"""Imports of a name that a module of the project no longer has."""

from ollm.services.request_reading.lost_imports import find_lost_imports

MAIN = "from paths import (\n    LOGS,\n    ROOT,\n)\nfrom const import NAME as n\n"
BEFORE = {"paths.py": "ROOT = 1\nLOGS = 2\n", "const.py": "NAME = 3\n"}


def test_a_file_that_imports_what_went_is_the_next_step() -> None:
    after = {"paths.py": "ROOT = 1\n", "const.py": "NAME = 3\nLOGS = 2\n"}

    assert find_lost_imports(BEFORE, after, ["main.py", "paths.py"], {"main.py": MAIN}.get) == [
        "main.py imports LOGS from paths, which no longer has it. It is in const now. Now change main.py."
    ]


def test_nothing_is_said_where_nothing_is_missing() -> None:
    moved = {"paths.py": "ROOT = 1\nfrom const import LOGS\n", "const.py": "NAME = 3\nLOGS = 2\n"}

    assert find_lost_imports(BEFORE, moved, ["main.py"], {"main.py": MAIN}.get) == []
    assert find_lost_imports(BEFORE, BEFORE, ["main.py"], {"main.py": MAIN}.get) == []
    gone = {"paths.py": "ROOT = 1\n"}
    assert find_lost_imports(BEFORE, gone, ["other.py"], {"other.py": "import paths\n"}.get) == []
