"""`ollm -p` with a model that writes blocks: its slips in programs, and values in tests of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_blocks import blocks, last_message, read, run_task
from tests.servers.answers import Answer

__all__ = ["blocks"]  # a fixture that each test uses


async def test_lines_go_into_json_without_their_line_breaks(tmp_path: Path) -> None:
    asked = "turn names.txt into a json list of strings, in names.json"
    code = "import json; print(json.dumps(open('names.txt').readlines()))"
    script = "make.py\n```python\nimport json\nlines = list(open('names.txt'))\njson.dump(lines, open('names.json', 'w'))\n```"
    for number, steps in enumerate(
        ([f'```bash\npython3 -c "{code}" > names.json\n```'], [script, "```bash\npython3 make.py\n```"])
    ):
        _, runner = await run_task(
            tmp_path / str(number), {"names.txt": "Mara\nJonas\n"}, asked, [*steps, "It is there."]
        )

        assert json.loads(read(runner, "names.json")) == ["Mara", "Jonas"]


async def test_a_file_of_this_turn_that_is_no_json_becomes_it(tmp_path: Path) -> None:
    asked = "turn names.txt into a json list of strings, in names.json"
    first = "```bash\ncat names.txt > names.json; cat names.json\n```"
    written = 'names.json\n```json\n["Mara", "Jonas", "Priya", "Leila"]\n```'
    script: list[Answer | str] = [first, "It is there.", written, "It is JSON now."]

    for number, old in enumerate(({}, {"names.json": '[\n"a",\n"b",\n"c"\n"d"\n]\n'})):
        files = {"names.txt": "Mara\nJonas\nPriya\nLeila\n", **old}
        steps = script if not old else script[2:]
        _, runner = await run_task(tmp_path / str(number), files, asked, steps)
        wanted = old.get("names.json", '["Mara", "Jonas", "Priya", "Leila"]\n')
        assert read(runner, "names.json") == wanted, "what was there before is not cut"


TEXT = "def shout(text):\n    return text.strip().upper() + '!'\n"
STACK = (
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n"
    "        self.items.append(item)\n\n    def pop(self):\n        return self.items.pop()\n"
)
RUN = "\n```"  # the command is begun
NO_TEST = "texts.shout has no test. add test_texts.py with one or two"


def make_test(*lines: str, case: bool = False) -> str:
    """A test of these lines, in a class where it is a `case`."""
    depth = "        " if case else "    "
    head = "import unittest\nfrom texts import shout\n\n\nclass Tests(unittest.TestCase):\n    def test_shout(self):\n"
    body = "".join(f"{depth}{line}\n" for line in lines)
    end = "\n\nif __name__ == '__main__':\n    unittest.main()\n"
    return f"{head}{body}{end}" if case else f"from texts import shout\n\n\ndef test_shout():\n{body}\n\ntest_shout()\n"


async def test_a_new_test_of_code_that_stays_gets_the_values_that_came(tmp_path: Path) -> None:
    test = make_test("self.assertEqual(shout('a'), 'A!')", 'self.assertEqual(shout("hey!"), "HEY!")', case=True)
    script: list[Answer | str] = [f"test_texts.py\n```python\n{test}```", RUN, "", RUN, "All pass."]

    said, runner = await run_task(tmp_path, {"texts.py": TEXT}, NO_TEST, script, kind="llama.cpp")

    told, begun = (message["content"] for message in runner.server.chats[2]["messages"][-2:])
    assert told.endswith(
        'python test_texts.py fails: shout("hey!") gives \'HEY!!\', not "HEY!". Now mend test_texts.py.'
    )
    line = '        self.assertEqual(shout("hey!"), "HEY'
    assert begun == f'test_texts.py\n```diff\n-{line}!")\n+{line}!!")\n```\n'
    assert read(runner, "test_texts.py") == test.replace('"HEY!"', '"HEY!!"')
    assert f'+{line}!!")' in said["toolCalls"][2]["result"]["diff"], "the person sees it"
    assert said["text"].endswith("All pass.")
    assert "Changed: test_texts.py (+12 -0)." in said["err"]


async def test_a_line_of_a_new_test_on_which_the_code_raises_an_error_goes(tmp_path: Path) -> None:
    asked = "Please write test_stack.py: push two items onto a Stack and check that pop gives back the last one first."
    test = (
        "from stack import Stack\n\n\ndef test_stack():\n    stack = Stack()\n    stack.push(1)\n    stack.push(2)\n"
        "    assert stack.pop() == 2\n    assert stack.pop() == 1\n    assert stack.pop() is None, 'is empty'\n"
    )
    script: list[Answer | str] = [f"test_stack.py\n```python\n{test}```", RUN, "", RUN, "All pass."]

    _, runner = await run_task(tmp_path, {"stack.py": STACK}, asked, script, kind="llama.cpp")

    assert "fails: stack.pop() raises IndexError. Now mend test_stack.py." in last_but_one(runner, 2)
    assert read(runner, "test_stack.py") == test.replace("    assert stack.pop() is None, 'is empty'\n", "")


def last_but_one(runner: Any, request: int) -> str:
    return str(runner.server.chats[request]["messages"][-2]["content"])


@pytest.mark.parametrize(
    "asked",
    [
        "write test_texts.py, shout should not double the mark",
        "add test_texts.py which checks that the mark is not doubled",
        'add test_texts.py with shout("hey!")',
        "there is a bug in shout: add test_texts.py for it",
    ],
)
async def test_a_value_of_which_the_request_speaks_stays(tmp_path: Path, asked: str) -> None:
    test = make_test('self.assertEqual(shout("hey!"), "HEY!")', case=True)
    script: list[Answer | str] = [f"test_texts.py\n```python\n{test}```", RUN, *["shout doubles the mark."] * 9]

    _, runner = await run_task(tmp_path, {"texts.py": TEXT}, asked, script, kind="llama.cpp")

    sent = [message["content"] for chat in runner.server.chats for message in chat["messages"]]
    assert any('fails: shout("hey!") gives \'HEY!!\', not "HEY!"' in said for said in sent)
    assert not any('"HEY!!"' in said for said in sent), "the model decides"


async def test_a_test_that_was_there_stays(tmp_path: Path) -> None:
    test = make_test('assert shout("hey!") == "HEY!"')
    asked = "add a test for two words to test_texts.py"
    more = test.replace(
        "\n\n\ntest_shout()", "\n\n\ndef test_words():\n    assert shout('a b') == 'A B!'\n\n\ntest_shout()"
    )
    script: list[Answer | str] = [f"test_texts.py\n```python\n{more}```", RUN, *["shout doubles the mark."] * 9]

    _, runner = await run_task(tmp_path, {"texts.py": TEXT, "test_texts.py": test}, asked, script, kind="llama.cpp")

    assert 'assert shout("hey!") == "HEY!"' in read(runner, "test_texts.py")
    assert not any(" gives " in str(chat["messages"][-2]["content"]) for chat in runner.server.chats)


async def test_a_new_test_of_new_code_is_begun_up_to_its_value_when_it_was_told_in_vain(tmp_path: Path) -> None:
    asked = "write a function count_vowels(text) in words.py and put a test for it in test_words.py"
    function = "    return sum(letter in 'aeiou' for letter in text)\n```\n"
    line = '        self.assertEqual(count_vowels("python"),'
    test = f"import unittest\n\n\nclass Tests(unittest.TestCase):\n    def test_it(self):\n{line} 2)\n```\n"
    told = 'python test_words.py fails: count_vowels("python") gives 1, not 2: mend it.'
    script: list[Answer | str] = [
        function,
        "Done.",
        test,
        RUN,
        "It fails.",
        "It still fails.",
        " 1)\n```",
        "Yes.",
        RUN,
        "Done.",
    ]

    said, runner = await run_task(
        tmp_path, {"words.py": "def shout(text):\n    return text\n"}, asked, script, kind="llama.cpp"
    )

    assert last_message(runner, 5) == told, "the model decides what is wrong"
    assert last_but_one(runner, 6) == told
    assert last_message(runner, 6) == f"test_words.py\n```diff\n-{line} 2)\n+{line}"
    assert read(runner, "test_words.py").endswith(f"{line} 1)\n")
    assert said["text"].endswith("Done.")


async def test_the_line_that_is_asked_for_comes_with_the_output(tmp_path: Path) -> None:
    program = "for name, value in (('a', 3), ('b', 9), ('c', 5)):\n    print(f'{name}: {value}')\n"
    for number, (asked, told) in enumerate(
        (
            ("run p.py and tell me the last value", "The last line is: c: 5"),
            ("run p.py, which is highest?", "Highest: b: 9"),
        )
    ):
        script: list[Answer | str] = ["```bash\npython p.py\n```", "It is this."]
        _, runner = await run_task(tmp_path / str(number), {"p.py": program}, asked, script)

        assert last_message(runner, 1) == f"a: 3\nb: 9\nc: 5\n\n\n{told}\n[exit code 0]"


async def test_a_question_for_a_name_in_code_that_was_shown_is_answered_in_words(tmp_path: Path) -> None:
    files = {"stack.py": STACK.replace("class Stack", "class EmptyError(Exception):\n    pass\n\n\nclass Stack")}
    script: list[Answer | str] = [" that comes is EmptyError."]

    said, runner = await run_task(tmp_path, files, "Which exception is there in stack.py?", script, kind="llama.cpp")

    assert last_message(runner, 0) == "The exception"
    assert (said["text"], said["toolCalls"]) == ("The exception that comes is EmptyError.", [])
