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


def test_a_program_in_another_language_that_uses_what_went_is_the_next_step() -> None:
    before, after = (
        {"cart.js": "function sumUp(items) {\n  return 1;\n}\n"},
        "function total(items) {\n  return 1;\n}\n",
    )
    main = 'const { sumUp } = require("./cart");\nconsole.log(sumUp([]));\n'
    names = ["cart.js", "main.js"]

    told = find_lost_imports(before, {"cart.js": after}, names, {"main.js": main}.get)

    assert told == ["main.js uses sumUp from cart.js, which no longer has it. Now change main.js."]
    own = {"main.js": "function sumUp() {\n  return 2;\n}\n// see './cart'\nsumUp();\n"}
    assert find_lost_imports(before, {"cart.js": after}, names, own.get) == []
    assert find_lost_imports(before, {"cart.js": after}, names, {"main.js": "sumUp();\n"}.get) == []
    assert find_lost_imports(before, before, names, {"main.js": main}.get) == []
