"""`ollm -p` with a model that writes blocks: steps that the words of the request say, and commands as they were meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_blocks import blocks, read, run_task

__all__ = ["blocks"]  # a fixture that each test uses


COUNT = "#!/bin/sh\nlist=words.txt\nwc -l < $list\n"


async def test_a_script_is_run_by_its_interpreter(tmp_path: Path) -> None:
    files = {"words.txt": "fern\nmoss\n", "count.sh": COUNT}

    script = ["```bash\ncount.sh\n```", "a.txt\n```\nhello\n```", "Done."]

    said, _ = await run_task(tmp_path, files, "Try the counting of words, then write hello into a.txt", script)

    assert [call["status"] for call in said["toolCalls"]] == ["ok", "ok"]
    assert said["toolCalls"][0]["result"]["llmContent"].startswith("2"), (
        "found without a path, and no program by its bits"
    )


async def test_what_breaks_is_run_first(tmp_path: Path) -> None:
    asked = "count.sh is meant to print how many lines words.txt has, but it breaks. See what is wrong and fix it."
    files = {"words.txt": "fern\n", "count.sh": COUNT.replace("words", "word")}

    said, runner = await run_task(tmp_path, files, asked, ["count.sh\n```\nx"] * 9, kind="llama.cpp")

    begun = str(runner.server.chats[0]["messages"][-2:])
    assert "```bash\\nsh count.sh" in begun or "No such file" in begun, "begun or done before the model is asked"
    assert said["toolCalls"][0]["name"] == "shell"


async def test_a_number_stands_alone_in_its_file(tmp_path: Path) -> None:
    asked = "Count the words in poem.txt and save the number, nothing else, in words.txt."
    command = "```bash\nwc -w poem.txt > words.txt; cat words.txt\n```"

    _, runner = await run_task(tmp_path, {"poem.txt": "a b\nc\n"}, asked, [command, "There are 3."])

    assert read(runner, "words.txt").strip() == "3"


async def test_a_command_from_the_words_ends_with_its_sentence(tmp_path: Path) -> None:
    files = {
        "slug.py": "def slug(t):\n    return t\n",
        "test_slug.py": "from slug import slug\n\nassert slug('A') == 'a'\n",
    }
    asked = "The test in test_slug.py fails when I run it with python. Correct slug.py, not the test."
    right = "slug.py\n```python\ndef slug(t):\n    return t.lower()\n```"

    said, runner = await run_task(
        tmp_path, files, asked, [right, *["```bash\npython test_slug.py\n```", "It passes."] * 2]
    )

    assert read(runner, "slug.py").endswith("t.lower()\n")
    assert said["toolCalls"][0]["name"] == "shell", "the test that fails"
    (session,) = runner.sessions()
    assert not any("python. Correct" in str(message) for message in session["messages"][1:])


async def test_a_definition_is_looked_for_before_the_model_is_asked(tmp_path: Path) -> None:
    files = {"a.py": "def parse_invoice(line):\n    return line\n", "b.py": "from a import parse_invoice\n"}

    said, runner = await run_task(
        tmp_path, files, "Which file defines the function parse_invoice?", ["It is defined in a.py."]
    )

    assert said["toolCalls"][0]["result"]["llmContent"].startswith("./a.py:1:def parse_invoice(line):")
    assert "b.py" not in said["toolCalls"][0]["result"]["llmContent"]
    assert len(runner.server.chats) == 1


async def test_data_that_does_not_parse_is_mended_and_not_what_reads_it(tmp_path: Path) -> None:
    broken = '{\n  "home": "/",\n  "about": "/about"\n  "help": "/help"\n}\n'
    files = {"routes.json": broken, "load.py": "import json\n\nprint(len(json.load(open('routes.json'))))\n"}
    asked = "load.py cannot read routes.json because it is not valid JSON. Find the mistake and fix it."
    right = broken.replace('about"\n', 'about",\n')

    _, runner = await run_task(tmp_path, files, asked, [right + "```\n", "It is mended."], kind="llama.cpp")

    asked_for = runner.server.chats[0]["messages"]
    assert "routes.json does not parse: Expecting ',' delimiter: line 4" in asked_for[-2]["content"]
    assert asked_for[-1]["content"] == "routes.json\n```\n"
    assert read(runner, "routes.json") == right


@pytest.mark.parametrize(
    "asked",
    [
        "Delete old.txt. Actually, don't.",
        "Delete old.txt if it is empty.",
        "Change a.py so that x is 2. Do not delete the docs folder, and leave old.txt alone.",
    ],
)
async def test_what_is_taken_back_or_forbidden_is_not_done_by_rule(tmp_path: Path, asked: str) -> None:
    files = {"old.txt": "kept\n", "docs/page.md": "# Page\n", "a.py": "x = 1\n"}

    said, runner = await run_task(tmp_path, files, asked, ["a.py\n```python\nx = 2\n```", *["Done."] * 6])

    assert not [call for call in said["toolCalls"] if call["name"] == "shell"]
    assert not any("Now run rm" in str(chat["messages"]) for chat in runner.server.chats)
    assert read(runner, "old.txt") == "kept\n"
    assert read(runner, "docs/page.md") == "# Page\n"
