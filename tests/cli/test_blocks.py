"""`ollm -p` with a model that writes blocks: commands, files and changed parts, as small models wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running, texts
from tests.servers.answers import Answer


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", "blocks")


async def run_task(
    directory: Path, files: dict[str, str], asked: str, script: list[Answer | str], *more: str, **server: Any
) -> tuple[dict[str, Any], Any]:
    directory.mkdir(exist_ok=True)
    async with running(directory, script, **server) as runner:
        for name, text in files.items():
            (runner.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (runner.workspace / name).write_text(text)
        done = await runner.run("-p", asked, "-o", "json", "--yes", *more)
    return {"code": done.code, "err": done.err, **(json.loads(done.out) if done.out else {})}, runner


def read(runner: Any, name: str) -> str:
    return str((runner.workspace / name).read_text())


def last_message(runner: Any, request: int) -> str:
    return str(runner.server.chats[request]["messages"][-1]["content"])


async def test_a_fenced_command_runs_and_its_output_comes_back_as_the_users(tmp_path: Path) -> None:
    answer = "I will count them.\n\n```bash\nwc -l < data.txt\n```\n\nThe file has 99 lines."
    said, runner = await run_task(
        tmp_path, {"data.txt": "x\n" * 37}, "How many lines has data.txt?", [answer, "It has 37."]
    )

    assert said["text"].split("\n")[0] == "I will count them."
    assert said["text"].endswith("It has 37.")
    assert "99" not in said["text"]
    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("shell", "ok")]
    sent = runner.server.chats[1]["messages"]
    assert sent[-1] == {"role": "user", "content": "37\n[exit code 0]"}
    assert sent[-2]["content"].endswith("```bash\nwc -l < data.txt\n```")
    assert "tools" not in runner.server.chats[0]
    (session,) = runner.sessions()
    assert session["messages"][1]["cut"].startswith("The"), "as far as it came before the answer was stopped"
    assert not any(
        "The file has" in str(message["content"]) for chat in runner.server.chats for message in chat["messages"]
    )


STORE = "".join(
    f"def total_{noun}s(items):\n    total = 0\n    for item in items:\n        total += item\n    return total\n\n\n"
    for noun in ("book", "lamp", "chair", "table", "shelf", "door", "window", "wall", "roof", "floor", "stair", "lift")
)


async def test_the_request_comes_with_the_names_and_the_texts_of_the_files_it_names(tmp_path: Path) -> None:
    files = {"conf.py": "DEBUG = False\nLIMIT = 12\n", "other.py": "x = 1\n", "store.py": STORE * 2}
    _, runner = await run_task(
        tmp_path, files, "Change LIMIT in conf.py, and look at total_lamps in store.py", ["Done."]
    )

    asked = last_message(runner, 0)
    assert "Files here: conf.py, other.py, store.py" in asked
    assert "conf.py:\n```\nDEBUG = False\nLIMIT = 12\n```" in asked
    assert "store.py is long (168 lines). Parts of it:\n```\ndef total_lamps(items):" in asked
    assert "total_chairs" not in asked
    assert "x = 1" not in asked
    assert texts(runner.sessions()[0])[0] == ("user", "Change LIMIT in conf.py, and look at total_lamps in store.py")


async def test_a_whole_file_is_written_and_the_changed_lines_come_back(tmp_path: Path) -> None:
    kept = "DEBUG = False\nNAME = 'x'\n"
    answer = f"conf.py\n```python\n{kept}LIMIT = 20\n```\n"
    said, runner = await run_task(
        tmp_path, {"conf.py": f"{kept}LIMIT = 12\n"}, "Change LIMIT in conf.py to 20.", [answer, "LIMIT is 20."]
    )

    assert read(runner, "conf.py") == f"{kept}LIMIT = 20\n"
    assert [(call["name"], call["args"].get("overwrite")) for call in said["toolCalls"]] == [("write_file", True)]
    assert "Changed lines of conf.py:\n-LIMIT = 12\n+LIMIT = 20" in last_message(runner, 1)


async def test_a_function_of_a_long_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    answer = "store.py\n```python\ndef total_lamps(items):\n    return sum(items)\n```"
    said, runner = await run_task(
        tmp_path, {"store.py": STORE}, "Let total_lamps in store.py use sum.", [answer, "It uses sum now."]
    )

    old = "def total_lamps(items):\n    total = 0\n    for item in items:\n        total += item\n    return total\n"
    assert read(runner, "store.py") == STORE.replace(old, "def total_lamps(items):\n    return sum(items)\n")
    assert [call["name"] for call in said["toolCalls"]] == ["edit_file"]


async def test_a_part_of_a_file_that_was_not_shown_whole_is_refused_with_the_reason(tmp_path: Path) -> None:
    text = "".join(f"line {n} of a long page that says nothing\n" for n in range(200))
    answer = "page.txt\n```\nsomething else\nquite different\n```"
    said, runner = await run_task(tmp_path, {"page.txt": text}, "Mend page.txt", [answer, "It did not work.", "No."])

    assert read(runner, "page.txt") == text
    assert said["toolCalls"][0]["status"] != "ok"
    assert "page.txt has 200 lines" in last_message(runner, 1)


async def test_a_block_that_breaks_the_file_is_asked_for_again_and_taken_the_third_time(tmp_path: Path) -> None:
    broken = "a.py\n```\ndef f(:\n    return 1\n```"
    files = {"a.py": "def f():\n    return 0\n"}
    _, runner = await run_task(
        tmp_path / "1", files, "Fix a.py", [broken, "a.py\n```\ndef f():\n    return 1\n```", "Done."]
    )

    told = last_message(runner, 1)
    assert "Nothing was changed: with this block a.py no longer parses: line 1" in told
    assert told.endswith("Now change a.py.")
    assert "def f(:" not in str(runner.server.chats[1]["messages"])
    assert read(runner, "a.py") == "def f():\n    return 1\n"
    said, runner = await run_task(tmp_path / "2", files, "Fix a.py", [broken, broken, broken, "Done."])
    assert [call["status"] for call in said["toolCalls"]] == ["failed", "failed", "ok"]
    assert "a.py no longer parses: line 1" in last_message(runner, 3)


async def test_what_nobody_wanted_gone_is_asked_for_again(tmp_path: Path) -> None:
    page = "# Log\n\n## New\n\n- fast\n- blue\n\n## 1.0\n\n- first\n"
    cut, whole = page.replace("## New\n\n- fast\n- blue\n\n", "2.0\n"), page.replace("## New", "## 2.0")
    script: list[Answer | str] = [f"log.md\n```\n{cut}```", f"log.md\n```\n{whole}```", "Done."]
    said, runner = await run_task(tmp_path / "1", {"log.md": page}, "The heading New in log.md should be 2.0", script)
    assert (read(runner, "log.md"), said["toolCalls"][0]["status"]) == (whole, "failed")
    asked = "Shorten log.md"
    said, runner = await run_task(tmp_path / "2", {"log.md": page}, asked, [script[0], "Done."])
    assert (read(runner, "log.md"), said["toolCalls"][0]["status"]) == (cut, "ok")

    code = "def area(w, h):\n    return w * h\n\n\ndef edge(w, h):\n    return 2 * (w + h)\n"
    hollow = code.replace("    return 2 * (w + h)", '    """The edge."""')
    more = code.replace("(w, h):", '(w, h):\n    """Text."""')
    script = [f"s.py\n```\n{hollow}```", f"s.py\n```\n{more}```", "Done."]
    said, _ = await run_task(tmp_path / "3", {"s.py": code}, "Give the functions in s.py docstrings.", script)
    assert said["toolCalls"][0]["status"] == "failed"
    asked = "Give area in s.py a docstring. Don't change anything else."
    said, runner = await run_task(tmp_path / "4", {"s.py": code}, asked, script[1:])
    assert read(runner, "s.py") == more.replace('\n    """Text."""\n    return 2', "\n    return 2")


async def test_blocks_that_come_to_nothing_are_asked_for_in_another_way_before_the_turn_ends(tmp_path: Path) -> None:
    same = "a.ini\n```\nx = 1\n```"
    said, runner = await run_task(
        tmp_path / "1", {"a.ini": "x = 1\n"}, "Fix a.ini", [same] * 5 + ["```bash\nsed -i s/1/2/ a.ini\n```", "Done."]
    )
    assert (said["code"], read(runner, "a.ini")) == (0, "x = 2\n")
    assert "Now change a.ini with a command." in last_message(runner, 3)
    said, _ = await run_task(tmp_path / "2", {"a.ini": "x = 1\n"}, "Fix a.ini", [same] * 9)
    assert (said["reason"], len(said["toolCalls"])) == ("loop", 6)


async def test_tests_are_run_and_not_only_defined_and_a_command_is_not_run_twice_in_vain(tmp_path: Path) -> None:
    leap = "def is_leap(year):\n    return year % 4 == 0\n"
    files = {
        "leap.py": leap,
        "test_leap.py": "from leap import is_leap\n\n\ndef test_it():\n    assert not is_leap(1900)\n",
    }
    ran, right = "```bash\npython test_leap.py\n```", f"leap.py\n```\n{leap[:-1]} and year % 100 != 0\n```"
    said, runner = await run_task(tmp_path, files, "make the tests pass", [ran, right, "Done."])

    assert "assert not is_leap(1900)" in last_message(runner, 0)
    assert [call["status"] for call in said["toolCalls"]] == ["ok", "failed", "ok", "ok"]
    assert "run already and nothing has changed since" in said["toolCalls"][1]["result"]["llmContent"]
    assert (said["code"], len(runner.server.chats)) == (0, 3)


async def test_tests_that_were_written_are_run(tmp_path: Path) -> None:
    wrong = "test_a.py\n```\nfrom a import f\n\n\ndef test_f():\n    assert f() == 2\n```"
    right = wrong.replace("2", "1")
    script: list[Answer | str] = [
        wrong,
        "Done.",
        "```bash\npython test_a.py\n```",
        "It passes.",
        right,
        "```bash\npython test_a.py\n```",
        "Done.",
    ]
    said, runner = await run_task(
        tmp_path, {"a.py": "def f():\n    return 1\n"}, "Add test_a.py with a test of f.", script
    )

    assert last_message(runner, 1).endswith("Now run python test_a.py.")
    assert last_message(runner, 4).endswith(". Now mend test_a.py.")
    assert (said["code"], "== 1" in read(runner, "test_a.py")) == (0, True)


async def test_a_replacement_that_finds_nothing_is_said_and_asked_for_more_freely(tmp_path: Path) -> None:
    wrong, right = (f"```bash\nsed -i 's/nginx:{old}/nginx:1.27/' c.yaml\n```" for old in ("1.26", "1.25"))
    said, runner = await run_task(
        tmp_path, {"c.yaml": "image: nginx:1.25\n"}, "bump nginx in c.yaml to 1.27", [wrong, right, "Done."]
    )

    assert "sed found nothing to replace: no file was changed." in last_message(runner, 1)
    assert runner.server.chats[1]["temperature"] > runner.server.chats[0].get("temperature", 0)
    assert (said["code"], read(runner, "c.yaml")) == (0, "image: nginx:1.27\n")


async def test_several_files_and_a_command_of_one_answer_are_done_in_their_order(tmp_path: Path) -> None:
    answer = (
        "one.py\n```\ndef bar():\n    return 41\n```\n\ntwo.py\n```\nfrom one import bar\n\nprint(bar() + 1)\n```\n"
        "```bash\npython two.py\n```\nOutput:\n```\n7\n```"
    )
    said, runner = await run_task(tmp_path, {}, "Write one.py and two.py and run two.py.", [answer, "It prints 42."])

    assert [call["name"] for call in said["toolCalls"]] == ["write_file", "write_file", "shell"]
    assert last_message(runner, 1).count("42\n[exit code 0]") == 1


async def test_a_command_changes_files_and_the_model_is_told_which_lines(tmp_path: Path) -> None:
    files = {"a.py": "def load(x):\n    return x\n", "old.txt": "x\n"}
    answer = "```bash\nsed -i 's/load/fetch/' a.py && rm old.txt\n```"
    _, runner = await run_task(tmp_path, files, "Rename load to fetch in a.py and delete old.txt", [answer, "Done."])

    told = last_message(runner, 1)
    assert told.startswith("[no output]\n[exit code 0]\n")
    assert "Changed lines of a.py:\n-def load(x):\n+def fetch(x):" in told
    assert "Deleted old.txt." in told


async def test_an_answer_that_cannot_be_true_meets_the_facts_once(tmp_path: Path) -> None:
    first = "add.py\n```\ndef add(a, b):\n    return a + b\n```"
    script: list[Answer | str] = [first, "All done.", "```bash\npython add.py > RESULT.txt\n```", "Now all is done."]
    said, runner = await run_task(
        tmp_path,
        {"add.py": "def add(a, b):\n    return a - b\n"},
        "Fix the function in add.py, run python add.py and write what it prints into RESULT.txt.",
        script,
    )

    told = "Now run python add.py."
    assert last_message(runner, 2) == told
    assert len(runner.server.chats) == 4
    assert said["text"].endswith("Now all is done.")
    assert ("system", told) in texts(runner.sessions()[0])


async def test_a_model_that_stays_with_its_answer_is_believed_after_the_facts(tmp_path: Path) -> None:
    _, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "Change x in a.py to 2.", ["Done.", "Done.", "Done."])

    assert len(runner.server.chats) == 2


async def test_questions_are_answered_without_a_word_about_changes(tmp_path: Path) -> None:
    answer = "In Python you write:\n```python\nprint(1)\n```"
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "How do I print 1 in Python?", [answer])

    assert said["text"] == answer
    assert said["toolCalls"] == []
    assert len(runner.server.chats) == 1


async def test_a_protected_file_is_neither_shown_nor_written_unasked(tmp_path: Path) -> None:
    answer = "../outside.txt\n```\nx\n```"
    said, runner = await run_task(tmp_path, {"a.py": "x\n"}, "Create ../outside.txt", [answer, "Done.", "Done."])

    assert not (runner.workspace.parent / "outside.txt").exists()
    assert all(call["status"] != "ok" for call in said["toolCalls"])


async def test_in_plan_mode_commands_only_look(tmp_path: Path) -> None:
    script: list[Answer | str] = ["```bash\ncat a.py\n```", "```bash\nrm a.py\n```", "It sets x."]
    said, runner = await run_task(
        tmp_path, {"a.py": "x = 4711\n"}, "Delete a.py unless it sets x.", script, "--mode", "plan"
    )

    looked, refused = said["toolCalls"]
    assert (looked["name"], looked["status"]) == ("read_file", "ok")
    assert refused["status"] != "ok"
    assert read(runner, "a.py") == "x = 4711\n"


TWO = {"a.py": "def greet():\n    pass\n", "b.py": "from a import greet\n\ngreet()\n"}
RENAME = "Rename the function greet to welcome in a.py and b.py."


@pytest.mark.parametrize("repeated", [False, True], ids=["goes on", "repeats it"])
async def test_llama_cpp_goes_on_with_a_step_that_the_words_begin(tmp_path: Path, repeated: bool) -> None:
    begun = "```bash\nsed -i 's/\\bgreet\\b/welcome/g' a.py b.py"
    answer = f"{begun if repeated else ''}\n```\nand what is made up"

    said, runner = await run_task(tmp_path, TWO, RENAME, [answer, "Renamed."], kind="llama.cpp")

    assert runner.server.chats[0]["messages"][-1] == {"role": "assistant", "content": begun}
    assert read(runner, "a.py") == "def welcome():\n    pass\n"
    assert read(runner, "b.py") == "from a import welcome\n\nwelcome()\n"
    assert runner.server.chats[1]["messages"][-1]["role"] == "user"
    assert said["text"] == "Renamed."


async def test_a_server_that_takes_no_beginning_is_asked_without_it(tmp_path: Path) -> None:
    message = "Assistant response prefill is incompatible with enable_thinking."
    refused = Answer(status=400, body={"error": {"message": message, "code": 400}})
    answer = "```bash\nsed -i 's/greet/welcome/g' a.py b.py\n```"

    said, runner = await run_task(tmp_path, TWO, RENAME, [refused, answer, "Renamed."], kind="llama.cpp")

    assert runner.server.chats[1]["messages"][-1]["role"] == "user"
    assert "welcome()" in read(runner, "b.py")
    assert said["text"] == "Renamed."


async def test_other_servers_get_no_beginning(tmp_path: Path) -> None:
    answer = "```bash\nsed -i 's/greet/welcome/g' a.py b.py\n```"
    _, runner = await run_task(tmp_path, TWO, RENAME, [answer, "Renamed."])

    assert [chat["messages"][-1]["role"] for chat in runner.server.chats] == ["user", "user"]


async def test_a_step_that_changes_nothing_is_asked_for_again_more_freely(tmp_path: Path) -> None:
    same, changed = "a.py\n```\nx = 1\n```", "a.py\n```\nx = 2\n```"
    said, runner = await run_task(
        tmp_path, {"a.py": "x = 1\n"}, "Change x in a.py to 2.", [same, same, changed, "x is 2."]
    )

    heat = [chat["temperature"] for chat in runner.server.chats]
    assert heat[0] == 0 < heat[1] < heat[2]
    assert heat[3] == 0
    assert read(runner, "a.py") == "x = 2\n"
    assert "repeating yourself" not in json.dumps(runner.server.chats)
    assert said["text"] == "x is 2."


async def test_a_long_step_that_is_left_out_is_not_taken_for_a_prompt_that_was_cut(tmp_path: Path) -> None:
    text = "".join(f"value_{number} = {number}\n" for number in range(45))
    same = Answer(text=f"a.py\n```\n{text}```", prompt_tokens=1900)
    changed = Answer(text=f"a.py\n```\n{text.replace('= 7', '= 8')}```", prompt_tokens=1910)
    last = Answer(text="Done.", prompt_tokens=1920)

    said, runner = await run_task(tmp_path, {"a.py": text}, "Set value_7 to 8 in a.py.", [same, changed, last])

    assert (said["code"], said["reason"]) == (0, "answered")
    assert "value_7 = 8\n" in read(runner, "a.py")
    assert "window" not in said["err"]


TINY = "coder-0.5b"  # under a billion parameters, by its name


async def test_a_tiny_model_is_told_to_speak_once_all_is_done_and_its_blocks_run_no_more(tmp_path: Path) -> None:
    wrong = "The mail is mended.\n```bash\nrm notes.md\n```"
    script: list[Answer | str] = ["notes.md\n```\nYou will receive it.\n```", wrong]
    said, runner = await run_task(
        tmp_path,
        {"notes.md": "You will recieve it.\n"},
        "Fix the spelling in notes.md.",
        script,
        "--model",
        TINY,
        model=TINY,
    )

    assert read(runner, "notes.md") == "You will receive it.\n"
    assert last_message(runner, 1).endswith("Now say in a sentence what was done or found.")
    assert runner.server.chats[1]["stop"] == ["```"]
    assert [call["name"] for call in said["toolCalls"]] == ["write_file"]


async def test_a_tiny_model_is_not_asked_for_a_command_that_the_words_say_in_full(tmp_path: Path) -> None:
    files = {"a.py": "def load():\n    return 3\n", "b.py": "from a import load\n\nprint(load())\n"}
    asked = "Rename the function load to fetch in a.py and b.py, then run python b.py."
    said, runner = await run_task(tmp_path, files, asked, ["It prints 3."], "--model", TINY, model=TINY)

    assert read(runner, "b.py") == "from a import fetch\n\nprint(fetch())\n"
    assert [call["args"]["command"] for call in said["toolCalls"]] == [
        r"sed -i 's/\bload\b/fetch/g' a.py b.py",
        "python b.py",
    ]
    assert len(runner.server.chats) == 1
    assert said["text"] == "It prints 3."


async def test_output_written_as_a_command_is_not_run_and_not_shown_again(tmp_path: Path) -> None:
    echo = "```bash\nbash: line 1: nothing: command not found\n```"
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "Which value has x in a.py?", [echo, "x is 1."])

    assert said["toolCalls"][0]["status"] == "failed"
    assert "That is output, not a command" in last_message(runner, 1)
    assert not any("line 1: nothing" in message["content"] for message in runner.server.chats[1]["messages"])


async def test_the_function_that_was_forgotten_is_named_with_its_text(tmp_path: Path) -> None:
    shop = "CURRENCY = 'EUR'\n\n\ndef show(item):\n    return item\n" + "\n\ndef pad():\n    return 0\n" * 30
    first = "shop.py\n```\nCURRENCY = 'USD'\n```"
    second = "shop.py\n```\ndef show(item):\n    return f'{item} [{CURRENCY}]'\n```"
    _, runner = await run_task(
        tmp_path,
        {"shop.py": shop},
        "Use USD instead of EUR as CURRENCY in shop.py and let show end with the currency in brackets.",
        [first, "CURRENCY is USD.", second, "Done."],
    )

    assert last_message(runner, 2).endswith("Now change show in shop.py.")
    assert "def show(item):\n    return item" in last_message(runner, 2)
    assert "return f'{item} [{CURRENCY}]'" in read(runner, "shop.py")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Could you explain to me how one would delete a.py?", "You can:\n```bash\nrm a.py\n```"),
        ("What would rm a.py do?", "It deletes:\n```bash\nrm a.py\n```"),
        ("Wie lösche ich a.py?", "So:\n```bash\nrm a.py\n```\nDann ist sie weg."),
        ("I want to know the command to delete a.py. Don't run it.", "So:\n```bash\nrm a.py\n```"),
        ("Review a.py, but do not change anything.", "I would write:\n\na.py\n```python\nX = 1\n```"),
    ],
)
@pytest.mark.parametrize("form", ["blocks", "auto"])
async def test_an_explanation_is_shown_whole_and_never_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, answer: str, form: str
) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", form)
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, asked, [answer])

    assert read(runner, "a.py") == "x = 1\n"
    assert said["text"] == answer
    assert said["toolCalls"] == []
    assert len(runner.server.chats) == 1


async def test_an_answer_to_a_question_overwrites_no_file_that_was_shown_with_it(tmp_path: Path) -> None:
    answer = "a.py\n```\nx = 2\n```"
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "In which city is the second data centre?", [answer])

    assert read(runner, "a.py") == "x = 1\n"
    assert said["toolCalls"] == []


async def test_change_nothing_else_forbids_nothing_that_was_asked_for(tmp_path: Path) -> None:
    answer = "a.py\n```\nx = 2\ny = 1\n```"
    _, runner = await run_task(
        tmp_path, {"a.py": "x = 1\ny = 1\n"}, "In a.py change x to 2. Change nothing else.", [answer, "Done."]
    )

    assert read(runner, "a.py") == "x = 2\ny = 1\n"


async def test_two_blocks_for_one_file_count_one_after_the_other(tmp_path: Path) -> None:
    answer = "a.py\n```\nx = 2\n```\n\na.py\n```\nx = 3\ny = 4\n```"
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "Set x in a.py to 3 and add y.", [answer, "Done."])

    assert read(runner, "a.py") == "x = 3\ny = 4\n"
    assert [call["status"] for call in said["toolCalls"]] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("answer", "path", "text"),
    [
        ("```bash\ncat > P.md <<'EOF'\n# A\n```\nls\n```\nEOF\n```", "P.md", "# A\n```\nls\n```\n"),
        ("P.md\n```\n# A\n\n```\nls\n```\n\nend\n```", "P.md", "# A\n\n```\nls\n```\n\nend\n"),
        ("1. Create the file b.py:\n\n   ```python\n   if 1:\n       x\n   ```\n", "b.py", "if 1:\n    x\n"),
        ("src\\b.py\r\n```python\r\nprint(1)\r\n```\r\n", "src/b.py", "print(1)\n"),
        ("**b.py**\n~~~python\nprint(1)\n~~~", "b.py", "print(1)\n"),
        ("Makefile\n```\nall:\n    echo hi\n```", "Makefile", "all:\n\techo hi\n"),
    ],
)
async def test_odd_blocks_are_read_as_they_are_meant(tmp_path: Path, answer: str, path: str, text: str) -> None:
    _, runner = await run_task(tmp_path, {"o.txt": "o\n"}, f"Create {path}.", [answer, "Done."])

    assert read(runner, path) == text


@pytest.mark.parametrize(
    ("old", "block"),
    [
        ("def g():\n    a = 1\n    b = 2\n    return a + b\n", "def g():\n    # ... existing code ...\n    return 5"),
        ("<p>\n<h1>A</h1>\n<b>1</b>\n<b>2</b>\n</p>\n", "<p>\n<h1>B</h1>\n<!-- rest of the page -->\n</p>"),
        (None, "def serve():\n    pass\n\n# ... rest of code"),
    ],
)
async def test_a_block_that_leaves_code_out_is_refused(tmp_path: Path, old: str | None, block: str) -> None:
    files = {} if old is None else {"a.py": old}
    said, runner = await run_task(tmp_path, files, "Change a.py.", [f"a.py\n```\n{block}\n```", "No.", "No.", "No."])

    assert [call["status"] for call in said["toolCalls"]] == ["failed"]
    assert "leaves a part of the code out" in json.dumps(runner.server.chats[1]["messages"])
    assert (read(runner, "a.py") if old else None) == old


async def test_a_command_that_writes_over_a_file_the_model_has_not_seen_is_a_block(tmp_path: Path) -> None:
    text = "".join(f"line {n} of a long page that says nothing\n" for n in range(200))
    answer = "```bash\ncat > page.txt <<'EOF'\nnothing\nEOF\n```"
    _, runner = await run_task(tmp_path, {"page.txt": text}, "Mend page.txt", [answer, "No.", "No."])

    assert read(runner, "page.txt") == text


@pytest.mark.parametrize(
    ("asked", "script", "account"),
    [
        ("Shorten a.py.", ["I shortened a.py.", "I shortened a.py."], "No file was changed and no command was run."),
        (
            "Delete o.bin.",
            ["```bash\nrm o.bin\n```", "Done."],
            "Changed: o.bin (deleted). Ran: rm o.bin (exit code 0).",
        ),
        (
            "Make t.txt and delete it.",
            ["```bash\ntouch t.txt\n```", "```bash\nrm t.txt\n```", "Done."],
            "Ran: touch t.txt (exit code 0); rm t.txt (exit code 0).",
        ),
        (
            "Try 2 in a.py, then take it back.",
            ["a.py\n```\nx = 2\n```", "a.py\n```\nx = 1\n```", "Ok."],
            "",
        ),
        ("What is x in a.py?", ["It is 1."], ""),
    ],
)
async def test_the_account_says_what_was_in_fact_done(
    tmp_path: Path, asked: str, script: list[Answer | str], account: str
) -> None:
    said, _ = await run_task(tmp_path, {"a.py": "x = 1\n", "o.bin": "\0\1"}, asked, script)

    assert said["err"].strip() == (f"ollm: {account}" if account else "")


async def test_in_plan_mode_nothing_is_said_to_be_left(tmp_path: Path) -> None:
    _, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "Set x in a.py to 2.", ["The plan: x."], "--mode", "plan")

    assert len(runner.server.chats) == 1


async def test_a_question_may_write_what_it_does_not_speak_of_to_find_the_answer(tmp_path: Path) -> None:
    table = {"t.csv": "id,name,amount\n1,red,2\n2,blue,5\n"}
    answer = "```bash\nawk '{s += $3} END {print s}' t.csv > sum.txt; cat sum.txt\n```"
    said, _ = await run_task(tmp_path, table, "What is the sum of amount in t.csv?", [answer, "It is 7."])

    (ran,) = said["toolCalls"]
    assert ran["args"]["command"].startswith("awk -F, ")
    assert ran["result"]["llmContent"].strip() == "7"


async def test_the_test_that_fails_stays_as_it_is(tmp_path: Path) -> None:
    tax = "def tax(price):\n    return price - 20\n"
    test = "from tax import tax\n\nassert tax(100) == 120\n"
    edits_test = "test_tax.py\n```python\nfrom tax import tax\n\nassert tax(100) == 80\n```"
    right = tax.replace("price - 20", "20 + price + 0")  # of another size: Python keeps bytecode
    said, runner = await run_task(
        tmp_path,
        {"tax.py": tax, "test_tax.py": test},
        "python test_tax.py fails. Fix tax.py so that it passes.",
        [edits_test, f"{right}```", "It passes."],
        kind="llama.cpp",
    )

    assert read(runner, "test_tax.py") == test
    assert "stays as it is" in said["toolCalls"][1]["result"]["llmContent"]
    assert read(runner, "tax.py") == right


async def test_the_run_that_comes_next_is_named_with_the_change_before_it(tmp_path: Path) -> None:
    answer = "```bash\nsed -i 's/greet/welcome/g' a.py b.py\n```"
    _, runner = await run_task(
        tmp_path,
        TWO,
        "Rename the function greet to welcome in a.py and b.py, then run python b.py.",
        [answer, "```bash\npython b.py\n```", "Renamed."],
    )

    assert last_message(runner, 1).endswith("\n\nNow run python b.py.")
    assert "Now" not in last_message(runner, 2)


async def test_a_script_that_prints_nothing_is_gone_on_with(tmp_path: Path) -> None:
    script: list[Answer | str] = [
        "def fib(n):\n    return n\n```",
        "\n```",
        "It prints the numbers.",
        "for n in range(3):\n    print(fib(n))\n```",
        "\n```",
        "0, 1, 2.",
    ]
    _, runner = await run_task(
        tmp_path, {}, "Write a script fib.py that prints three numbers and run it.", script, kind="llama.cpp"
    )

    begun = runner.server.chats[3]["messages"][-1]["content"]
    assert begun == "fib.py\n```\ndef fib(n):\n    return n\n\n\n"
    assert read(runner, "fib.py") == "def fib(n):\n    return n\n\n\nfor n in range(3):\n    print(fib(n))\n"


async def test_places_that_changed_are_counted_where_that_is_asked(tmp_path: Path) -> None:
    answer = "```bash\nsed -i 's/#ff6600/#0066ff/g' s.css\n```"
    _, runner = await run_task(
        tmp_path,
        {"s.css": "a { color: #ff6600; }\n" * 17},
        "Replace #ff6600 by #0066ff everywhere in s.css and tell me how many places that were.",
        [answer, "17."],
    )

    assert "That is 17 changed lines." in last_message(runner, 1)
