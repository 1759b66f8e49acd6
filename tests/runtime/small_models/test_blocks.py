"""The blocks of an answer, whole and as it is streamed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.runtime.small_models.blocks import BlockStreamParser, find_steps

TOOLS = ("recall", "web_fetch")


def read_steps(text: str) -> list[tuple[str, str, str]]:
    return [(block.kind, block.path, block.body) for block in find_steps(text, TOOLS)[0]]


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("```bash\nls -la\n```", "ls -la"),
        ("You can use the following command:\n\n```sh\nls\n```\n", "ls"),
        ("```console\n$ python app.py\n42\n$ ls\n```", "python app.py\nls"),
        ("~~~bash\nls\n~~~", "ls"),
        ("```bash\nls\n", "ls"),
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
        "```conf.py\nA = 1\n```",
        "```python conf.py\nA = 1\n```",
        "```python:conf.py\nA = 1\n```",
        '```python title="conf.py"\nA = 1\n```',
        "```python\n# conf.py\nA = 1\n```",
        "./conf.py\n```python\nA = 1\n```",
        "1. conf.py:\n```python\nA = 1\n```",
        "- **conf.py**\n````python\nA = 1\n````",
    ],
)
def test_a_name_and_a_block_is_a_file(answer: str) -> None:
    assert read_steps(answer) == [("file", "conf.py", "A = 1\n")]


@pytest.mark.parametrize(
    "answer",
    [
        "The port is 8471.",
        "Number of lines in conf.py:\n```\n3\n```",
        "Output of `conf.py`:\n```\nrm -rf src\n```",
        "my conf.py\n```\nA = 1\n```",
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


def test_files_without_an_extension_count_if_their_names_are_common_or_begin_with_a_dot() -> None:
    assert read_steps("### /users\n```\nx\n```\nInput/Output\n```\n3\n```") == []
    assert read_steps(".git/config\n```\nx\n```") == [("file", ".git/config", "x\n")]
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


ANSWER = "I will look.\n\nconf.py\n```python\nA = 1\n```\n\n```bash\npython conf.py\n```\nIt prints 7.\n"


def feed(text: str, cuts: list[int]) -> tuple[str, BlockStreamParser]:
    parser = BlockStreamParser(())
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    shown = ""
    for start, end in itertools.pairwise(places):
        shown += parser.feed(text[start:end])
        if parser.is_over:
            break
    return shown + parser.finish(), parser


@given(st.lists(st.integers(0, 500), max_size=60))
def test_however_it_is_cut_the_steps_and_the_words_are_the_same(cuts: list[int]) -> None:
    shown, parser = feed(ANSWER, cuts)

    assert shown.strip() == "I will look."
    assert [(step.kind, step.path or step.body) for step in parser.steps] == [
        ("file", "conf.py"),
        ("shell", "python conf.py"),
    ]


@given(st.text(alphabet="ab `~#*.\n", max_size=80), st.lists(st.integers(0, 80), max_size=20))
def test_nothing_of_an_answer_in_words_is_lost(text: str, cuts: list[int]) -> None:
    shown, parser = feed(text, cuts)

    if not parser.steps:
        assert shown == text


def test_words_go_out_before_the_answer_is_over() -> None:
    parser = BlockStreamParser(())
    assert parser.feed("The port is ") == "The port is "
    assert parser.feed("8471.") == "8471."


def test_a_name_and_its_block_are_held_back() -> None:
    parser = BlockStreamParser(())
    assert parser.feed("conf.py\n```\nA = 1\n") == ""
    assert parser.is_held
