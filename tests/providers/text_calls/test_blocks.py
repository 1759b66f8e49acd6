"""Blocks in answers of small models, as such models wrote them."""

import pytest

from ollm.providers.text_calls.blocks import find_steps

TOOLS = ("recall", "web_fetch")


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
