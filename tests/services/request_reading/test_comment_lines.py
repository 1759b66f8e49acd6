"""The line that is to be commented out, or in again."""

import ast
from pathlib import Path

import pytest

from ollm.services.request_reading.comment_lines import find_comment_command, find_comment_steps
from tests.services.request_reading.applied_commands import apply_command

APP = """\
import json
from routes import ROUTES

DEBUG = True
LIMIT = [
    1,
]


def start_toolbar():
    print('debug toolbar on')


def main():
    setup(1)
    # cleanup()
    print('routes:', *ROUTES)


start_toolbar()
main()
"""
CONF = "services:\n  web:\n    image: nginx\n    restart: always\n#  cache:\n"
JS = "import fs from 'fs';\nconst debug = true;\nfunction go() {\n  run();\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "asked", "old", "new"),
    [
        (
            "app.py",
            APP,
            "comment out the line in app.py that starts the debug toolbar",
            "\nstart_toolbar()",
            "\n# start_toolbar()",
        ),
        ("app.py", APP, "Comment out the call to start_toolbar in app.py.", "\nstart_toolbar()", "\n# start_toolbar()"),
        ("app.py", APP, "comment start_toolbar() out in app.py", "\nstart_toolbar()", "\n# start_toolbar()"),
        ("app.py", APP, "please comment out `setup(1)` in app.py", "    setup(1)", "    # setup(1)"),
        ("app.py", APP, "comment out line 4 of app.py", "DEBUG = True", "# DEBUG = True"),
        ("app.py", APP, "comment out the DEBUG setting in app.py", "DEBUG = True", "# DEBUG = True"),
        ("app.py", APP, "comment out the import of json in app.py and run it", "import json", "# import json"),
        ("app.py", APP, "uncomment the call of cleanup in app.py", "# cleanup()", "cleanup()"),
        (
            "app.py",
            APP,
            "comment out 'print('routes:', *ROUTES)' in app.py",
            "    print('routes",
            "    # print('routes",
        ),
        ("c.yml", CONF, "comment out restart in c.yml", "    restart", "    # restart"),
        ("c.yml", CONF, 'uncomment "cache:" in c.yml', "#  cache", " cache"),
        ("a.js", JS, "comment out the line with `const debug` in a.js", "const", "// const"),
        ("a.js", JS, "comment out the call to run in a.js", "  run", "  // run"),
    ],
)
def test_one_line_is_meant_and_the_command_does_it(
    tmp_path: Path, path: str, text: str, asked: str, old: str, new: str
) -> None:
    command = find_comment_command(asked, f"Files here: {path}\n\n{path}:\n```\n{text}```")
    after = apply_command(tmp_path, path, text, command)

    assert after == text.replace(old, new)
    (step,) = find_comment_steps(asked, {path: text}, {})
    assert step.endswith(f"Now run {command}.")
    assert find_comment_steps(asked, {path: after}, {path: text}) == []


@pytest.mark.parametrize(
    "asked",
    [
        "comment out print in app.py",  # which?
        "comment out the print lines in app.py",
        "comment out start_toolbar in app.py",  # the function, or its call?
        "comment out the function start_toolbar in app.py",
        "comment out line 10 of app.py",  # the head of a function
        "comment out line 99 of app.py",
        "comment out the line in app.py that does the work",
        "comment out all calls of `setup(1)` in app.py",
        "comment out `DEBUG` and `setup(1)` in app.py",
        "uncomment main() in app.py",
        "comment out the call to setup in other.py",
        "How do I comment out the call to setup in app.py?",
        "Add a comment to the call of setup in app.py",
    ],
)
def test_other_words_mean_no_line(asked: str) -> None:
    assert find_comment_command(asked, f"app.py:\n```\n{APP}```") == ""
    assert find_comment_steps(asked, {"app.py": APP}, {}) == []


def test_a_line_that_moved_is_found_again_and_one_that_went_is_not_asked_for() -> None:
    asked = "run it and comment out the call to setup in app.py"
    moved = APP.replace("DEBUG = True\n", "")

    assert find_comment_command(asked, f"app.py:\n```\n{APP}```") == ""
    (step,) = find_comment_steps(asked, {"app.py": moved}, {"app.py": APP})
    assert step.startswith("Line 14 of app.py is not commented out. Now run sed -i '14s|")
    assert find_comment_steps(asked, {"app.py": APP.replace("    setup(1)\n", "")}, {"app.py": APP}) == []


def test_a_long_module_is_not_parsed_once_for_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    real = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text: parsed.append(text) or real(text))
    text = "".join(f"value_{number} = {number}\n" for number in range(900))

    (step,) = find_comment_steps("Comment out value_7 in a.py.", {"a.py": text}, {})

    assert step.startswith("Line 8 of a.py is not commented out.")
    assert len(parsed) < 5
