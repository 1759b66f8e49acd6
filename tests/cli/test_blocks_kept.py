"""`ollm -p` with a model that writes blocks: what nobody asked for is not done, whatever it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import running
from tests.cli.test_blocks import blocks, last_message, read, run_task

__all__ = ["blocks"]  # a fixture that each test uses

CODE = {"a.py": "def foo():\n    return 1\n", "b.py": "from a import foo\nprint(foo())\n", "notes.txt": "one\n"}
SAID = "I looked at it."


@pytest.mark.parametrize(
    "asked",
    [
        "delete a.py only if nothing imports it",
        "delete notes.txt but ask me first",
        "don't rename foo to baz in a.py",
        "don't run b.py",
        "if notes.txt is unused delete it",
        "what would break if we rename foo to baz",
        "what does b.py do? don't run it",
        "explain b.py before I run it",
        "run b.py after I confirm",
        "notes.txt should not be deleted",
    ],
)
async def test_an_order_under_a_reservation_is_left_to_the_model(tmp_path: Path, asked: str) -> None:
    said, runner = await run_task(tmp_path, CODE, asked, [SAID], kind="llama.cpp")

    assert said["toolCalls"] == []
    assert {name: read(runner, name) for name in CODE} == CODE


@pytest.mark.parametrize(
    "asked", ["I forgot how one deletes a folder in bash", "whats the best way of getting rid of logs"]
)
async def test_commands_for_somebody_who_wants_to_know_are_not_run(tmp_path: Path, asked: str) -> None:
    answer = "You can use this command:\n\n```bash\nrm -rf logs\n```\n\nIt removes the folder."
    said, runner = await run_task(tmp_path, {"logs/a.log": "1\n"}, asked, [answer])

    assert said["toolCalls"] == []
    assert "rm -rf logs" in said["text"]
    assert read(runner, "logs/a.log") == "1\n"


async def test_a_file_that_is_to_stay_is_not_changed_by_a_command_either(tmp_path: Path) -> None:
    files = {"a.py": "def f():\n    return 1\n", "test_a.py": "from a import f\nassert f() == 2\n"}
    script = ["```bash\nsed -i 's/== 2/== 1/' test_a.py\n```", "a.py\n```\ndef f():\n    return 2\n```", "Done."]

    said, runner = await run_task(tmp_path, files, "test_a.py fails, fix it but do not touch test_a.py", script)

    assert read(runner, "test_a.py") == files["test_a.py"]
    refused = [call for call in said["toolCalls"] if "sed" in str(call["args"])]
    assert [call["status"] for call in refused] == ["failed"]
    assert any("test_a.py is to stay as it is" in last_message(runner, n) for n in range(len(runner.server.chats)))


async def test_a_question_leaves_no_file_behind(tmp_path: Path) -> None:
    users = "ann,ok\nbob,blocked\ncem,blocked\n"
    answer = "```bash\ngrep -c blocked users.csv > blocked.txt\n```"
    said, runner = await run_task(
        tmp_path, {"users.csv": users}, "how many users in users.csv are blocked?", [answer, "Two are blocked."]
    )

    assert not (runner.workspace / "blocked.txt").exists()
    assert said["toolCalls"][0]["args"]["command"] == "grep -c blocked users.csv"
    assert "2" in last_message(runner, 1)


async def test_one_line_of_many_alike_goes_to_the_function_that_is_named(tmp_path: Path) -> None:
    text = "".join(f"def f{n}(x):\n    a = x + {n}\n    b = a * 2\n    return b\n\n\n" for n in range(70))
    _, runner = await run_task(
        tmp_path,
        {"big.py": text},
        "in big.py f33 should add 99 instead of 33",
        ["big.py\n```\n    a = x + 99\n```", "Ok."],
    )

    assert read(runner, "big.py") == text.replace("a = x + 33\n", "a = x + 99\n")


async def test_a_file_of_json_is_never_broken(tmp_path: Path) -> None:
    text = '{\n  "a": 1,\n  "b": {"x": 1}\n}\n'
    broken = "c.json\n```json\nDone\n```"
    said, runner = await run_task(tmp_path, {"c.json": text}, "set a to 5 in c.json", [broken] * 5 + ["No."] * 3)

    assert read(runner, "c.json") == text
    assert {call["status"] for call in said["toolCalls"] if call["name"] == "write_file"} <= {"failed"}


async def test_a_test_that_was_there_stays_beside_the_one_that_is_added(tmp_path: Path) -> None:
    files = {
        "cal.py": "def is_leap(y):\n    return y % 4 == 0\n\n\ndef days(y):\n    return 366 if is_leap(y) else 365\n",
        "test_cal.py": "from cal import days\n\n\ndef test_days():\n    assert days(2023) == 365\n",
    }
    added = "test_cal.py\n```\nfrom cal import days, is_leap\n\n\ndef test_leap():\n    assert is_leap(2024)\n```"
    _, runner = await run_task(tmp_path, files, "add a test for is_leap to test_cal.py", [added, "It is there."])

    text = read(runner, "test_cal.py")
    assert "def test_days():\n    assert days(2023) == 365\n" in text
    assert "def test_leap():\n    assert is_leap(2024)\n" in text


async def test_a_file_outside_that_was_refused_is_told_at_the_end(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    said, _ = await run_task(
        tmp_path / "w", {}, f"write hi into {outside}", [f"```bash\necho hi > {outside}\n```", "Written."]
    )

    assert not outside.exists()
    assert "No file was changed and no command was run." in said["err"]


async def test_plan_mode_says_that_nothing_was_done(tmp_path: Path) -> None:
    said, runner = await run_task(
        tmp_path, CODE, "delete notes.txt", ["```bash\nrm notes.txt\n```", "Done, it is deleted."], "--mode", "plan"
    )

    assert read(runner, "notes.txt") == "one\n"
    assert "No file was changed and no command was run." in said["err"]


async def test_what_a_text_is_to_say_is_no_order(tmp_path: Path) -> None:
    files = CODE | {"README.md": "# A\n"}
    asked = "in README.md write: rename foo to baz, then run b.py"
    written = "README.md\n```\n# A\n\nrename foo to baz, then run b.py\n```"
    said, runner = await run_task(tmp_path, files, asked, [written, "It says so."], kind="llama.cpp")

    assert [call["name"] for call in said["toolCalls"]] == ["write_file"]
    assert {name: read(runner, name) for name in CODE} == CODE
    assert len(runner.server.chats) == 2


async def test_a_file_that_is_only_an_example_is_not_asked_for(tmp_path: Path) -> None:
    files = {"a.py": "PORT = 1\n", "b.py": "PORT = 9\n"}
    asked = "set PORT in a.py to the same value as in b.py"
    _, runner = await run_task(tmp_path, files, asked, ["a.py\n```\nPORT = 9\n```", "All done."])

    assert read(runner, "b.py") == "PORT = 9\n"
    assert "Now change b.py" not in str(runner.server.chats)
    assert len(runner.server.chats) == 2


async def test_a_slip_in_the_name_of_a_file_makes_no_second_one(tmp_path: Path) -> None:
    text = '{\n  "theme": "light"\n}\n'
    written = 'preferences.json\n```json\n{\n  "theme": "dark"\n}\n```'
    _, runner = await run_task(
        tmp_path, {"preferences.json": text}, "set theme to dark in prefrences.json", [written, "It is dark."]
    )

    assert "light" in last_message(runner, 0)
    assert [path.name for path in runner.workspace.glob("*.json")] == ["preferences.json"]
    assert len(runner.server.chats) == 2


async def test_a_block_for_a_file_with_other_letters_in_its_name_is_taken(tmp_path: Path) -> None:
    _, runner = await run_task(
        tmp_path, {"größe.txt": "1\n"}, "größe.txt should say 2 instead of 1", ["größe.txt\n```\n2\n```", "Done."]
    )

    assert read(runner, "größe.txt") == "2\n"


async def test_what_was_refused_is_not_asked_for_again_in_the_same_words(tmp_path: Path) -> None:
    async with running(tmp_path, ["```bash\nrm notes.txt\n```", "```bash\nrm notes.txt\n```", "I may not."]) as runner:
        (runner.workspace / "notes.txt").write_text("one\n")
        done = await runner.run("-p", "clean up here", "-o", "json")

    said = json.loads(done.out)
    assert [call["status"] for call in said["toolCalls"]] == ["denied", "failed"]
    assert "This was refused" in last_message(runner, 2)


async def test_output_goes_into_no_file_that_nobody_asked_for(tmp_path: Path) -> None:
    said, runner = await run_task(
        tmp_path,
        CODE,
        "foo in a.py should return 2",
        ["```bash\npython b.py > out.txt; cat out.txt\n```", "Ok.", "Ok."],
    )

    assert not (runner.workspace / "out.txt").exists()
    assert said["toolCalls"][0]["args"]["command"] == "python b.py"


@pytest.mark.parametrize("asked", ["delete", "clean up"])
async def test_an_order_without_a_word_of_what_deletes_nothing(tmp_path: Path, asked: str) -> None:
    said, runner = await run_task(tmp_path, CODE, asked, ["```bash\nrm a.py b.py notes.txt\n```"])

    assert said["toolCalls"] == []
    assert {name: read(runner, name) for name in CODE} == CODE


async def test_a_sentence_does_not_become_a_file_that_a_program_reads(tmp_path: Path) -> None:
    style = "body { margin: 0; }\n.btn { color: red; }\n"
    prose = "style.css\n```css\nThe file is already correct.\n```"
    _, runner = await run_task(tmp_path, {"style.css": style}, "make .btn blue in style.css", [prose] * 6 + ["No."] * 4)

    assert read(runner, "style.css") == style


async def test_what_ran_besides_does_not_hide_that_nothing_was_changed(tmp_path: Path) -> None:
    script = ["```bash\nls\n```", "a.py\n```\nx = 2\n```", "x is 2."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.py").write_text("x = 1\n")
        done = await runner.run("-p", "set x to 2 in a.py", "-o", "json", "--allow", "shell:ls")

    assert "No file was changed. Ran: ls (exit code 0)." in done.err
    assert read(runner, "a.py") == "x = 1\n"


async def test_a_command_that_failed_does_not_hide_that_nothing_was_changed(tmp_path: Path) -> None:
    script = ["```bash\nsed -i 's/1/2/' b.txt\n```", *["x is 2."] * 8]
    said, _ = await run_task(tmp_path, {"a.py": "x = 1\n"}, "set x to 2 in a.py", script)

    assert said["err"].count("No file was changed. Ran: sed -i") == 1


async def test_a_claim_after_a_step_that_came_to_nothing_is_set_right(tmp_path: Path) -> None:
    script = ["a.py\n```\nx = 1\n```", "The port is 8080 now."]
    said, _ = await run_task(tmp_path, {"a.py": "x = 1\n"}, "the port is 8080 now", script)

    assert [call["status"] for call in said["toolCalls"]] == ["failed"]
    assert "No file was changed and no command was run." in said["err"]


async def test_the_readme_is_the_page_of_that_name(tmp_path: Path) -> None:
    files = {"README.md": "# A\n\nVersion 1\n", "a.py": "V = 1\n"}
    _, runner = await run_task(tmp_path, files, "set the version to 2 in the README", ["No.", "No.", "No.", "No."])

    assert "README.md:\n```\n# A\n\nVersion 1\n```" in last_message(runner, 0)


async def test_after_the_one_change_that_was_asked_nothing_else_is_done(tmp_path: Path) -> None:
    files = {"shop.py": "TAX = 19\n", "app.py": "open('made.db', 'w')\n"}
    script = ["shop.py\n```\nTAX = 7\n```", "TAX is 7.\n\n```bash\npython app.py > out.txt\n```"]
    said, runner = await run_task(tmp_path, files, "TAX in shop.py should be 7", script)

    assert read(runner, "shop.py") == "TAX = 7\n"
    assert [call["name"] for call in said["toolCalls"]] == ["edit_file"]
    assert not (runner.workspace / "made.db").exists()
    assert len(runner.server.chats) == 2


async def test_after_the_command_that_the_words_say_in_full_nothing_else_is_done(tmp_path: Path) -> None:
    files = {"app.py": "secret = 4\nprint('start')\nprint(secret)\n"}
    more = "It is done.\n\napp.py\n```\nsecret = 4\n```"
    asked = "In app.py comment out the line that prints secret."
    said, runner = await run_task(tmp_path, files, asked, [more], kind="llama.cpp")

    assert read(runner, "app.py") == "secret = 4\nprint('start')\n# print(secret)\n"
    assert [call["name"] for call in said["toolCalls"]] == ["shell"]
    assert len(runner.server.chats) == 1


async def test_what_else_was_ordered_is_done_after_it(tmp_path: Path) -> None:
    files = {"a.py": "def load():\n    return 1\n"}
    script = ["a.py\n```\ndef fetch():\n    return 2\n```", "It is done."]
    asked = "Rename load to fetch in a.py and let it return 2."
    _, runner = await run_task(tmp_path, files, asked, ["\n```", *script], kind="llama.cpp")

    assert read(runner, "a.py") == "def fetch():\n    return 2\n"


async def test_what_is_written_by_hand_goes_where_it_is_written(tmp_path: Path) -> None:
    _, runner = await run_task(
        tmp_path, {"team.txt": "Ann\n"}, "Add Carla to our team", ["```bash\necho Carla >> team.txt\n```", "Added."]
    )

    assert read(runner, "team.txt") == "Ann\nCarla\n"


async def test_a_new_page_may_be_a_sentence(tmp_path: Path) -> None:
    page = "page.html\n```html\nWelcome to our small shop.\n```"
    _, runner = await run_task(tmp_path, {}, "Create page.html that says Welcome to our small shop.", [page, "Done."])

    assert read(runner, "page.html") == "Welcome to our small shop.\n"
