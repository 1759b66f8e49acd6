"""Blocks in answers of small models, as such models wrote them."""

import pytest

from ollm.providers.text_calls.block_edits import Change, read_change
from ollm.providers.text_calls.blocks import find_steps

TOOLS = ("recall", "web_fetch")
LONG = "".join(
    f'def total_{noun}s(items):\n    """What all of them cost."""\n    total = 0\n    for item in items:\n'
    f'        total += item["price"]\n    return total\n\n\ndef find_{noun}(items, name):\n    for item in items:\n'
    f'        if item["name"] == name:\n            return item\n    return None\n\n\n'
    for noun in ("book", "lamp", "chair", "table")
)
CLASS = (
    'class Team:\n    """One team."""\n\n    def __init__(self, title):\n        self.title = title\n        self.members = []\n'
    + "".join(f"\n    def method_{n}(self):\n        return {n}\n" for n in range(12))
)
SETTINGS = "".join(
    f"{group}_PORT = {n}\n{group}_RETRIES = 3\n\n" for n, group in enumerate(("WEB", "MAIL", "CACHE", "AUTH"))
)
YAML = "".join(
    f"  {name}:\n    image: {name}:1\n    replicas: 2\n    restart: always\n"
    for name in ("web", "api", "cache", "cron")
)


def read_steps(text: str, known: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    return [(block.kind, block.path, block.body) for block in find_steps(text, TOOLS, known)[0]]


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("```bash\nls -la\n```", "ls -la"),
        ("You can use the following command:\n\n```sh\nls\n```\n", "ls"),
        ("```console\n$ python app.py\n42\n$ ls\n```", "python app.py\nls"),
        ("~~~bash\nls\n~~~", "ls"),
        ("```bash\nls\n", "ls"),
        ("```\ngrep -rn LIMIT .\n```", "grep -rn LIMIT ."),
        ("```bash\ncat > a.md <<'EOF'\n# A\nEOF\n```\nDone.", "cat > a.md <<'EOF'\n# A\nEOF"),
    ],
)
def test_a_fenced_shell_block_is_a_command(answer: str, command: str) -> None:
    assert read_steps(answer) == [("shell", "", command)]


@pytest.mark.parametrize(
    "answer",
    [
        "conf.py\n```\nA = 1\n```",
        "conf.py\n\n```python\nA = 1\n```",
        "**conf.py**\n```python\nA = 1\n```",
        "### `conf.py`\n```python\nA = 1\n```",
        "`conf.py`:\n```python\nA = 1\n```",
        "File: conf.py\n```python\nA = 1\n```",
        "Here is the updated `conf.py`:\n\n```python\nA = 1\n```\n\nThis sets A to 1.",
        "```conf.py\nA = 1\n```",
        "```python conf.py\nA = 1\n```",
        "```python:conf.py\nA = 1\n```",
        '```python title="conf.py"\nA = 1\n```',
        "```python\n# conf.py\nA = 1\n```",
        "./conf.py\n```python\nA = 1\n```",
        "conf.py (updated):\n```python\nA = 1\n```",
    ],
)
def test_a_name_and_a_block_is_a_file(answer: str) -> None:
    assert read_steps(answer) == [("file", "conf.py", "A = 1\n")]


@pytest.mark.parametrize(
    "answer",
    [
        "The port is 8471.",
        "In Python you write:\n```python\nprint(1)\n```",
        "It printed:\n```\n42\n```",
        "```output\n42\n```",
        "```bash\n\n```",
        "Use `conf.py` and `app.py`:\n```python\nA = 1\n```",
        "",
    ],
)
def test_words_and_quoted_code_are_no_step(answer: str) -> None:
    assert read_steps(answer) == []


def test_files_without_an_extension_count_when_they_are_known() -> None:
    assert read_steps("bin/start\n```\nx\n```", known=("bin/start",)) == [("file", "bin/start", "x\n")]
    assert read_steps("Makefile\n```\nall:\n```") == [("file", "Makefile", "all:\n")]
    assert read_steps("Certainly\n```python\nx\n```") == []
    assert read_steps(".env\n```\nA=1\n```") == [("file", ".env", "A=1\n")]


def test_a_script_of_the_shell_under_its_name_is_a_file() -> None:
    assert read_steps("hi.sh\n```bash\necho hi\n```") == [("file", "hi.sh", "echo hi\n")]


def test_several_files_and_then_one_command_count_and_what_follows_is_cut() -> None:
    answer = (
        "one.py\n```\na\n```\n\ntwo.py\n```\nb\n```\nRun it:\n```bash\npython two.py\n```\nOutput:\n```\n7\n```\n"
        "three.py\n```\nc\n```\n"
    )
    steps, end = find_steps(answer)

    assert [(step.kind, step.path or step.body) for step in steps] == [
        ("file", "one.py"),
        ("file", "two.py"),
        ("shell", "python two.py"),
    ]
    assert answer[end:].startswith("Output:")


def test_a_page_may_hold_blocks_of_its_own() -> None:
    body = "# A\n\n```bash\npip install a\n```\n\nDone.\n"
    assert read_steps(f"README.md\n```markdown\n{body}```\n") == [("file", "README.md", body)]


def test_a_block_in_a_tools_name_calls_the_tool() -> None:
    assert read_steps('```recall\n{"messageId": 3}\n```') == [("tool", "", '{"messageId": 3}\n')]


def test_a_block_that_breaks_off_says_so() -> None:
    assert find_steps("a.py\n```\nx = 1\ny =")[0][0].closed is False


# What a block under a name does to the file


def test_a_new_file_gets_all_of_the_block() -> None:
    assert read_change("a.py", "x = 1", None, shown_whole=False) == Change(content="x = 1\n")


def test_a_file_that_was_shown_whole_is_replaced() -> None:
    current = "".join(f"line {n}\n" for n in range(30))
    body = current.replace("line 7\n", "line seven\n")
    assert read_change("a.txt", body, current, shown_whole=True) == Change(content=body)


def test_a_long_file_that_was_not_shown_is_not_replaced() -> None:
    change = read_change("a.txt", "one\ntwo\n", "".join(f"line {n}\n" for n in range(90)), shown_whole=False)
    assert "90 lines" in change.mistake
    assert "<<<<<<< SEARCH" in change.mistake


def test_a_function_takes_the_place_of_the_one_with_its_name() -> None:
    new = "def total_chairs(items):\n    return 0\n"
    change = read_change("store.py", new, LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    assert LONG.count(target) == 1
    assert target.startswith("def total_chairs(items):")
    assert target.endswith("return total")
    assert replacement == new.rstrip()


def test_a_new_function_is_added_behind_the_last() -> None:
    change = read_change("store.py", "import math\n\n\ndef area(r):\n    return math.pi * r\n", LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    assert target.startswith("def find_table")
    assert replacement == f"{target}\n\n\ndef area(r):\n    return math.pi * r"


@pytest.mark.parametrize(
    "body",
    [
        "    def count(self):\n        return 5\n",
        "class Team:\n    def count(self):\n        return 5\n",
        "class Team:\n    # ... existing code ...\n\n    def count(self):\n        return 5\n",
    ],
)
def test_a_method_is_added_to_its_class_and_the_others_stay(body: str) -> None:
    change = read_change("team.py", body, CLASS, shown_whole=False)

    ((target, replacement),) = change.edits
    assert CLASS.count(target) == 1
    after = CLASS.replace(target, replacement)
    scope: dict[str, type] = {}
    exec(after, scope)
    assert scope["Team"]("x").count() == 5
    assert scope["Team"]("x").method_11() == 11


def test_lines_that_set_a_name_take_the_place_of_those_that_set_it() -> None:
    change = read_change("settings.py", "MAIL_PORT = 2525\nAUTH_RETRIES = 9\n", SETTINGS, shown_whole=False)
    assert change.edits == (("MAIL_PORT = 1", "MAIL_PORT = 2525"), ("AUTH_RETRIES = 3", "AUTH_RETRIES = 9"))


def test_a_shown_part_with_a_change_takes_the_place_of_that_part() -> None:
    body = "  cache:\n    image: cache:1\n    replicas: 5\n    restart: always\n"
    change = read_change("compose.yaml", body, YAML * 1 + "".join(f"# {n}\n" for n in range(40)), shown_whole=False)

    ((target, replacement),) = change.edits
    assert "cache:1\n    replicas: 2" in target
    assert "cache:1\n    replicas: 5" in replacement


def test_stretches_between_comments_that_stand_for_the_rest_are_placed() -> None:
    old = "".join(f"step_{n}()\n" for n in range(40))
    body = "step_3()\nextra()\nstep_4()\n# ... rest of the code ...\nstep_20()\nmore()\nstep_21()\n"
    change = read_change("a.py", body, old, shown_whole=True)

    assert change.edits == (
        ("step_3()\nstep_4()", "step_3()\nextra()\nstep_4()"),
        ("step_20()\nstep_21()", "step_20()\nmore()\nstep_21()"),
    )


def test_a_search_block_and_a_diff_are_edits() -> None:
    search = "<<<<<<< SEARCH\nMAIL_PORT = 1\n=======\nMAIL_PORT = 25\n>>>>>>> REPLACE\n"
    assert read_change("s.py", search, SETTINGS, shown_whole=False).edits == (("MAIL_PORT = 1", "MAIL_PORT = 25"),)

    diff = "--- a/s.py\n+++ b/s.py\n@@ -3,2 +3,2 @@\n-MAIL_PORT = 1\n+MAIL_PORT = 25\n MAIL_RETRIES = 3\n"
    assert read_change("s.py", diff, SETTINGS, shown_whole=False).edits == (
        ("MAIL_PORT = 1\nMAIL_RETRIES = 3", "MAIL_PORT = 25\nMAIL_RETRIES = 3"),
    )


def test_only_a_new_function_under_the_name_of_a_small_file_does_not_wipe_the_rest() -> None:
    current = "import math\n\n\ndef circle(r):\n    return math.pi * r * r\n\n\ndef square(a):\n    return a * a\n"
    change = read_change("shapes.py", "def rectangle(a, b):\n    return a * b\n", current, shown_whole=True)

    ((target, replacement),) = change.edits
    assert target.startswith("def square")
    assert "def rectangle" in replacement


def test_a_function_that_differs_in_its_name_alone_is_the_old_one_renamed() -> None:
    old = LONG[LONG.index("def total_lamps") : LONG.index("def find_lamp")].rstrip()
    change = read_change("store.py", old.replace("total_lamps", "sum_lamps"), LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    after = LONG.replace(target, replacement)
    assert after == LONG.replace("total_lamps", "sum_lamps")


def test_what_changes_nothing_says_so() -> None:
    assert "already" in read_change("a.py", "x = 1\n", "x = 1\n", shown_whole=True).mistake
