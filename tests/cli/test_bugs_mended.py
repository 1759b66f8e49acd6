"""`ollm -p` with a model that writes blocks: a file is mended until what was said to fail succeeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import running
from tests.cli.test_blocks import blocks, last_message, read, run_task

__all__ = ["blocks"]  # a fixture that each test uses

CODE = 'def squares(n):\n    """The squares of 1 to n."""\n    return [i * i for i in range(n)]\n'
TEST = "from mod import squares\nassert squares(3) == [1, 4, 9], squares(3)\nassert squares(1) == [1], 'one'\nprint('ok')\n"
FILES = {"mod.py": CODE, "test_mod.py": TEST}
ASKED = "test_mod.py fails. Fix mod.py."
SAID = "squares(3) gives [0, 1, 4], but it should give [1, 4, 9]."
MENDED = CODE.replace("range(n)", "range(1, n + 1)")


async def test_a_bug_is_asked_about_alone_with_what_came_and_what_should_have(tmp_path: Path) -> None:
    said, runner = await run_task(tmp_path, FILES, ASKED, [f"{MENDED}```", "Mended."], kind="llama.cpp")

    assert read(runner, "mod.py") == MENDED
    assert read(runner, "test_mod.py") == TEST
    first = runner.server.chats[0]
    question, begun = first["messages"]
    assert question["content"] == (
        f"```python\n{CODE.rstrip()}\n```\n\n{SAID} What has to be changed? Write the code without the bug."
    )
    assert begun == {"role": "assistant", "content": "mod.py\n```python\n"}
    assert first["temperature"] == 0
    ran = [call["args"]["command"] for call in said["toolCalls"] if call["name"] == "shell"]
    assert ran == ["python test_mod.py"] * 2
    assert len(runner.server.chats) == 2


async def test_every_attempt_starts_from_the_file_as_it_was_and_is_written_more_freely(tmp_path: Path) -> None:
    worse = CODE.replace("i * i", "i + i")
    script = [f"{worse}```", f"{CODE}```", f"{MENDED}```", "Mended."]

    _, runner = await run_task(tmp_path, FILES, ASKED, script, kind="llama.cpp")

    assert read(runner, "mod.py") == MENDED
    asked = [chat["messages"][0]["content"] for chat in runner.server.chats[:3]]
    assert len(set(asked)) == 1
    assert [chat["temperature"] for chat in runner.server.chats[:3]] == [0, 0.8, 0.8]
    assert "ok" in last_message(runner, 3)


async def test_an_attempt_that_gets_further_is_where_the_next_one_starts(tmp_path: Path) -> None:
    further = CODE.replace("return [", "if n == 3:\n        return [1, 4, 9]\n    return [")
    script = [f"{further}```", f"{MENDED}```", "Mended."]

    _, runner = await run_task(tmp_path, FILES, ASKED, script, kind="llama.cpp")

    second = runner.server.chats[1]["messages"][0]["content"]
    assert "if n == 3" in second
    assert "squares(1) should give [1], but it gives something else." in second
    assert read(runner, "mod.py") == MENDED


async def test_a_bug_that_is_not_found_ends_with_words(tmp_path: Path) -> None:
    wrong = [f"{CODE.replace('i * i', f'i * {number}')}```" for number in range(8)]

    said, runner = await run_task(tmp_path, FILES, ASKED, [*wrong, "I cannot find it."], kind="llama.cpp")

    assert len([call for call in said["toolCalls"] if call["name"] == "write_file"]) == 8
    assert said["text"].endswith("I cannot find it.")
    assert read(runner, "test_mod.py") == TEST


async def test_a_server_that_takes_no_beginning_is_asked_with_all_that_was_said(tmp_path: Path) -> None:
    _, runner = await run_task(tmp_path, FILES, ASKED, [f"mod.py\n```python\n{MENDED}```", "Mended."])

    assert read(runner, "mod.py") == MENDED
    assert last_message(runner, 0).endswith(f"{SAID} Now find the bug in mod.py.")
    assert len(runner.server.chats[0]["messages"]) > 2


async def test_what_is_only_to_be_looked_at_is_not_mended(tmp_path: Path) -> None:
    asked = "Why does test_mod.py fail? Do not change anything."

    _, runner = await run_task(
        tmp_path, FILES, asked, ["```bash\npython test_mod.py\n```", "It counts from 0."], kind="llama.cpp"
    )

    assert read(runner, "mod.py") == CODE
    assert "find the bug" not in last_message(runner, 1)


async def test_who_is_told_no_does_not_try_again(tmp_path: Path) -> None:
    async with running(tmp_path, [f"{MENDED}```", "I may not."], kind="llama.cpp") as runner:
        for name, text in FILES.items():
            (runner.workspace / name).write_text(text)
        done = await runner.run("-p", ASKED, "-o", "json", "--allow", "shell:=python test_mod.py")

    said = json.loads(done.out)
    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("shell", "ok"), ("write_file", "denied")]
    assert said["text"].endswith("I may not.")
    assert read(runner, "mod.py") == CODE
    assert len(runner.server.chats) == 2


async def test_after_a_no_nothing_is_asked_for_again(tmp_path: Path) -> None:
    async with running(tmp_path, ["a.txt\n```\none\n```", "I may not."]) as runner:
        done = await runner.run("-p", "Write one into a.txt.", "-o", "json")

    assert json.loads(done.out)["text"].endswith("I may not.")
    assert len(runner.server.chats) == 2


SCRIPT = "#!/bin/sh\nset -e\nlist=word.txt\nwc -l < $list\n"


async def test_a_script_of_the_shell_is_mended_with_what_it_said_last_and_the_files_there(tmp_path: Path) -> None:
    files = {"count.sh": SCRIPT, "words.txt": "elm\noak\n"}
    asked = "count.sh should print how many lines words.txt has, but it breaks. Fix it."
    mended = SCRIPT.replace("word.txt", "words.txt")

    said, runner = await run_task(tmp_path, files, asked, [f"{mended}```", "Mended."], kind="llama.cpp")

    assert read(runner, "count.sh") == mended
    question, begun = runner.server.chats[0]["messages"]
    assert question["content"].startswith(f"```sh\n{SCRIPT.rstrip()}\n```\n\n`sh count.sh` ends with `count.sh: ")
    assert "word.txt" in question["content"].partition("ends with")[2]
    assert "Files here: count.sh, words.txt." in question["content"]
    assert begun["content"] == "count.sh\n```sh\n"
    assert [call["args"].get("command") for call in said["toolCalls"]] == ["sh count.sh", None, "sh count.sh"]


async def test_a_script_of_the_shell_is_tried_less_often(tmp_path: Path) -> None:
    wrong = [f"{SCRIPT.replace('word.txt', f'word{number}.txt')}```" for number in range(8)]

    said, _ = await run_task(
        tmp_path, {"count.sh": SCRIPT}, "count.sh fails. Fix it.", [*wrong[:4], "I cannot."], kind="llama.cpp"
    )

    assert len([call for call in said["toolCalls"] if call["name"] == "write_file"]) == 4
    assert said["text"].endswith("I cannot.")


@pytest.mark.parametrize(
    "asked",
    [
        "pytest is failing, can you fix it? dont touch the tests",
        "fix mod.py so that the tests in test_mod.py pass, leave the tests alone",
    ],
)
async def test_tests_that_fail_or_are_to_pass_are_run_first(tmp_path: Path, asked: str) -> None:
    said, runner = await run_task(
        tmp_path,
        FILES,
        asked,
        [f"{MENDED}```", "Ok."],
        kind="llama.cpp",
    )

    assert read(runner, "mod.py") == MENDED
    assert "squares(3)" in runner.server.chats[0]["messages"][0]["content"]
    assert [call["status"] for call in said["toolCalls"]] == ["ok"] * 3
