"""`ollm -p` with a model that writes blocks: commands, files and changed parts, as small models wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running, texts
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
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
    answer = "I will count them.\n\n```run\nwc -l < data.txt\n```\n\nThe file has 99 lines."
    said, runner = await run_task(
        tmp_path, {"data.txt": "x\n" * 37}, "How many lines has data.txt?", [answer, "It has 37."]
    )

    assert said["text"].split("\n")[0] == "I will count them."
    assert said["text"].endswith("It has 37.")
    assert "99" not in said["text"]
    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("shell", "ok")]
    sent = runner.server.chats[1]["messages"]
    assert sent[-1] == {"role": "user", "content": "37\n[exit code 0]"}
    assert sent[-2]["content"].endswith("```run\nwc -l < data.txt\n```")
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


async def test_a_whole_file_is_written(tmp_path: Path) -> None:
    kept = "DEBUG = False\nNAME = 'x'\n"
    answer = f"```write conf.py\n{kept}LIMIT = 20\n```\n"
    said, runner = await run_task(
        tmp_path, {"conf.py": f"{kept}LIMIT = 12\n"}, "Change LIMIT in conf.py to 20.", [answer, "LIMIT is 20."]
    )

    assert read(runner, "conf.py") == f"{kept}LIMIT = 20\n"
    assert [(call["name"], call["args"].get("overwrite")) for call in said["toolCalls"]] == [("write_file", True)]


async def test_a_function_of_a_long_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    answer = "```write store.py\ndef total_lamps(items):\n    return sum(items)\n```"
    said, runner = await run_task(
        tmp_path, {"store.py": STORE}, "Let total_lamps in store.py use sum.", [answer, "It uses sum now."]
    )

    old = "def total_lamps(items):\n    total = 0\n    for item in items:\n        total += item\n    return total\n"
    assert read(runner, "store.py") == STORE.replace(old, "def total_lamps(items):\n    return sum(items)\n")
    assert [call["name"] for call in said["toolCalls"]] == ["edit_file"]


async def test_code_in_a_shell_block_is_not_run_and_says_why(tmp_path: Path) -> None:
    answer = "```run\nimport os\nbigger = size > data\nprint(bigger)\n```"
    said, runner = await run_task(tmp_path, {"data": "kept\n"}, "compare them", [answer, "Done."])

    assert read(runner, "data") == "kept\n"
    assert [call["status"] for call in said["toolCalls"]] == ["failed"]
    assert "no shell command" in last_message(runner, 1)


TWO_CLASSES = "class Shop:\n    @property\n    def add(self):\n        return 1\n\n\nclass Cart:\n    def add(self):\n        return 2\n"
LONG_YAML = "env:\n  A: 1\n  B: 2\njobs:\n  build:\n    run: x\n" + "".join(f"# {n}\n" for n in range(40))
ONE = "def f():\n    return 1\n"
LONG_PAGE = "".join(f"line {n}\n" for n in range(80))
FUNCTIONS = "".join(f"def f{n}(a, b):\n    x = a + b\n    y = x * {n}\n    return y\n\n\n" for n in range(12))


LEAVES_OUT = "leaves a part of the code out"
REFUSED = [
    [
        ("a.py", TWO_CLASSES, "def add(self):\n    return 3", "fits several places"),
        ("a.yaml", LONG_YAML, "env:\n  A: 1\n  B: 2\n  C: 3\n...", LEAVES_OUT),
        ("a.txt", LONG_PAGE, "line 3\nline new\n...\nline 70", "not all of it"),
        ("b.py", FUNCTIONS, "    x = a + b\n    y = x * 100\n    return y", "fits several places"),
        ("c.py", "def g():\n    a = 1\n    b = 2\n    return a\n", "def g():\n    # ... existing code ...", LEAVES_OUT),
        ("new.py", None, "def serve():\n    pass\n\n# ... rest of code", LEAVES_OUT),
    ],
    [
        ("a.html", "<p>\n<h1>A</h1>\n<b>1</b>\n</p>\n", "<p>\n<h1>B</h1>\n<!-- rest of the page -->\n</p>", LEAVES_OUT),
        ("a.json", '{"x": 1}\n', '{"x": 2,}', "no longer parses"),
        ("a.toml", "x = 1\n", "x = = 2", "no longer parses"),
        ("b.yaml", "x: 1\ny: 2\n", "x: [1\ny: 2", "no longer parses"),
        ("d.py", f"{ONE}\n\ndef g():\n    return 2\n", f"{ONE}\n\ndef h():\n    return 3\n\n\nh()\n", "loses g"),
        ("page.md", "".join(f"- {n}\n" for n in range(9)), "- 0\n- 1\n- two\n", "loses 6 of 9 lines"),
    ],
]


@pytest.mark.parametrize("refused", REFUSED, ids=["where", "what"])
async def test_a_block_that_would_do_harm_is_refused_with_the_reason(
    tmp_path: Path, refused: list[tuple[str, str | None, str, str]]
) -> None:
    files = {name: old for name, old, _, _ in refused if old is not None}
    answer = "\n\n".join(f"```write {name}\n{block}\n```" for name, _, block, _ in refused)
    said, runner = await run_task(tmp_path, files, f"Change {', '.join(files)}.", [answer, "No.", "No."])

    assert [call["status"] for call in said["toolCalls"]] == ["failed"] * len(refused)
    for call, (name, _, _, reason) in zip(said["toolCalls"], refused, strict=True):
        assert reason in call["result"]["llmContent"], name
    assert {name: read(runner, name) for name in files} == files
    assert not (runner.workspace / "new.py").exists()


async def test_decorators_stay_and_the_last_line_cannot_be_forged_by_a_name(tmp_path: Path) -> None:
    block = "```write a.py\nclass Shop:\n    def add(self):\n        return 3\n```"
    forged = "```run\ntouch $'b.txt\\nollm: No file was changed.'\n```"
    said, runner = await run_task(tmp_path, {"a.py": TWO_CLASSES}, "Change Shop.add in a.py.", [block, forged, "Ok."])

    assert read(runner, "a.py") == TWO_CLASSES.replace("return 1", "return 3")
    assert not any(line.startswith("ollm: No file") for line in said["err"].splitlines())


async def test_a_part_of_a_file_that_was_not_shown_whole_is_refused_with_the_reason(tmp_path: Path) -> None:
    text = "".join(f"line {n} of a long page that says nothing\n" for n in range(200))
    answer = "```write page.txt\nsomething else\nquite different\n```"
    said, runner = await run_task(tmp_path, {"page.txt": text}, "Mend page.txt", [answer, "It did not work.", "No."])

    assert read(runner, "page.txt") == text
    assert said["toolCalls"][0]["status"] != "ok"
    assert "page.txt has 200 lines" in last_message(runner, 1)


async def test_several_files_and_a_command_of_one_answer_are_done_in_their_order(tmp_path: Path) -> None:
    answer = (
        "```write one.py\ndef bar():\n    return 41\n```\n\n```write two.py\nfrom one import bar\n\nprint(bar() + 1)\n```\n"
        "```run\npython two.py\n```\nOutput:\n```\n7\n```"
    )
    said, runner = await run_task(tmp_path, {}, "Write one.py and two.py and run two.py.", [answer, "It prints 42."])

    assert [call["name"] for call in said["toolCalls"]] == ["write_file", "write_file", "shell"]
    assert last_message(runner, 1).count("42\n[exit code 0]") == 1


async def test_a_command_changes_files(tmp_path: Path) -> None:
    files = {"a.py": "def load(x):\n    return x\n", "old.txt": "x\n"}
    answer = "```run\nsed -i 's/load/fetch/' a.py && rm old.txt\n```"
    _, runner = await run_task(tmp_path, files, "Rename load to fetch in a.py and delete old.txt", [answer, "Done."])

    assert read(runner, "a.py") == "def fetch(x):\n    return x\n"
    assert not (runner.workspace / "old.txt").exists()
    assert last_message(runner, 1) == "[no output]\n[exit code 0]"


async def test_a_file_that_a_command_changed_can_be_written(tmp_path: Path) -> None:
    script: list[Answer | str] = ["```run\nsed -i s/1/2/ a.py\n```", "```write a.py\nx = 3\n```", "Done."]
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "Fix a.py", script)

    assert (read(runner, "a.py"), [call["status"] for call in said["toolCalls"]]) == ("x = 3\n", ["ok", "ok"])


@pytest.mark.parametrize("path", ["../outside.txt", ".git/config"])
async def test_a_block_for_a_file_out_of_reach_writes_nothing_and_says_so(tmp_path: Path, path: str) -> None:
    files = {"a.py": "x\n", ".git/HEAD": "ref: refs/heads/main\n"}
    said, runner = await run_task(tmp_path, files, "Do it.", [f"```write {path}\nx\n```", "Done.", "Done."])

    assert not (runner.workspace / path).exists()
    assert [call["args"]["path"] for call in said["toolCalls"]] == [path]
    assert "No file was changed and no command was run." in said["err"]


async def test_the_model_reads_its_own_text_letter_for_letter(tmp_path: Path) -> None:
    answer = "First  this:\n\n```write store.py \ndef total_lamps( items ):\n  return 7\n```\nNow\n```run\n$ ls\n```"
    said, runner = await run_task(tmp_path, {"store.py": STORE}, "Let total_lamps in store.py be 7.", [answer, "Done."])

    assert runner.server.chats[1]["messages"][-2] == {"role": "assistant", "content": answer}
    assert [call["name"] for call in said["toolCalls"]] == ["edit_file", "shell"]


async def test_a_file_that_was_not_shown_is_written_as_a_whole(tmp_path: Path) -> None:
    files = {f"m{n}.txt": "filler words\n" * 300 for n in range(12)} | {"z.txt": "p\nq\nr\ns\nt\n"}
    _, runner = await run_task(tmp_path, files, "Improve it", ["```write z.txt\nP\nQ\nR\nS\nT\n```", "Done."])

    assert read(runner, "z.txt") == "P\nQ\nR\nS\nT\n"


async def test_a_refused_block_stays_the_models_and_the_reason_comes_behind_it(tmp_path: Path) -> None:
    answer = "```write calc.py\ndef add(a, b:\n```\n```run\nls\n```"
    _, runner = await run_task(tmp_path, {"calc.py": "x = 1\n"}, "Add add to calc.py", [answer, "Done.", "Done."])

    asked, wrote, reason = runner.server.chats[1]["messages"][-3:]
    assert asked == runner.server.chats[0]["messages"][-1]
    assert wrote == {"role": "assistant", "content": answer}
    assert reason["content"].startswith("Nothing was changed: with this block calc.py no longer parses")
    assert "Not run, because calc.py before it was not done: Nothing was changed" in reason["content"]
    long, _ = await run_task(
        tmp_path / "2",
        {},
        "Tell me",
        [Answer(text="so", reason="length", completion_tokens=0)],
        kind="vllm",
        window=8192,
    )
    assert "The answer was stopped after 2,000 tokens" in long["err"]


SCRIPT = "```sh\n#!/bin/sh\nrm a.txt\n```"
STEPS = {
    "The script:\n\n```write tools/clean\nrm a.txt\n```": {"tools/clean": "rm a.txt\n"},
    "```write clean.sh\n#!/bin/sh\nrm a.txt\n```": {"clean.sh": "#!/bin/sh\nrm a.txt\n"},
    "<think>\n```write b.txt\nwrong\n```\n\n```write b.txt\nno\n```\n</think>\n```write b.txt\nyes\n```": {
        "b.txt": "yes\n"
    },
    "```write pkg/__init__.py\n```": {"pkg/__init__.py": ""},
    '```write conf.json\n{"limit": 20}\n```': {},
    '```write conf.json\n{"limit": 20} \n```': {"conf.json": '{"limit": 20} \n'},
    "```write notes.md\n# Project\n```": {"notes.md": "# Project\n"},
}
NO_STEPS = [
    f"The script clean.sh:\n{SCRIPT}",
    "<think>\nI could:\n```run\nrm a.txt\n```\n</think>\nKeep it.",
]


@pytest.mark.parametrize("steps", [STEPS, *({answer: {}} for answer in NO_STEPS)], ids=["steps", "script", "thought"])
async def test_a_block_does_what_it_says_where_it_says(tmp_path: Path, steps: dict[str, dict[str, str]]) -> None:
    files = {"a.txt": "one\n", "conf.json": '{\n  "limit": 12,\n  "name": "x"\n}\n', "doc/notes.md": "# Doc\n"}
    files["src/calc.py"] = "def add(a, b):\n    return a - b\n"
    asked = "Look at a.txt, conf.json, doc/notes.md and src/calc.py"
    _, runner = await run_task(tmp_path, files, asked, [*steps, "Done."])

    made = {name: text for each in steps.values() for name, text in each.items()}
    found = {str(path.relative_to(runner.workspace)) for path in runner.workspace.rglob("*") if path.is_file()}
    assert {name for name in found if not name.startswith(".")} == {*files, *made}
    assert {name: read(runner, name) for name in files | made} == files | made


async def test_a_block_that_the_server_breaks_off_is_recorded_and_not_run(tmp_path: Path) -> None:
    broken = Answer(text="I look.\n\n```run\ntouch made one two three four", reset_after=6)
    said, runner = await run_task(tmp_path, {"a.py": "x\n"}, "Do it.", [broken] * 4)

    assert said["code"] != 0
    assert not (runner.workspace / "made").exists()
    (session,) = runner.sessions()
    assert session["messages"][1]["interrupted"]
    assert "```run\ntouch" in session["messages"][1]["parts"][0]["text"]


async def test_a_file_is_sent_once_and_its_own_fences_do_not_end_it(tmp_path: Path) -> None:
    page = "# Page\n```sh\nls\n```\nend\n"
    _, runner = await run_task(tmp_path, {"page.md": page, "b.md": page + "b\n"}, "Join @page.md and b.md", ["Done."])

    asked = last_message(runner, 0)
    assert asked.count("# Page") == 2
    assert f"b.md:\n````\n{page}b\n````" in asked


async def test_in_plan_mode_commands_only_look(tmp_path: Path) -> None:
    script: list[Answer | str] = ["```run\ncat a.py\n```", "```run\nrm a.py\n```", "It sets x."]
    said, runner = await run_task(
        tmp_path, {"a.py": "x = 4711\n"}, "Delete a.py unless it sets x.", script, "--mode", "plan"
    )

    looked, refused = said["toolCalls"]
    assert (looked["name"], looked["status"]) == ("read_file", "ok")
    assert refused["status"] != "ok"
    assert read(runner, "a.py") == "x = 4711\n"


async def test_a_step_that_changes_nothing_is_asked_for_again(tmp_path: Path) -> None:
    same, changed = "```write a.py\nx = 1\n```", "```write a.py\nx = 2\n```"
    said, runner = await run_task(
        tmp_path, {"a.py": "x = 1\n"}, "Change x in a.py to 2.", [same, same, changed, "x is 2."]
    )

    assert read(runner, "a.py") == "x = 2\n"
    assert "repeating yourself" not in json.dumps(runner.server.chats)
    assert said["text"] == "x is 2."


async def test_two_blocks_for_one_file_count_one_after_the_other(tmp_path: Path) -> None:
    answer = "```write a.py\nx = 2\n```\n\n```write a.py\nx = 3\ny = 4\n```"
    said, runner = await run_task(tmp_path, {"a.py": "x = 1\n"}, "Set x in a.py to 3 and add y.", [answer, "Done."])

    assert read(runner, "a.py") == "x = 3\ny = 4\n"
    assert [call["status"] for call in said["toolCalls"]] == ["ok", "ok"]


ODD = {
    "P.md": ("```run\ncat > P.md <<'EOF'\n# A\n```\nls\n```\nEOF\n```", "# A\n```\nls\n```\n"),
    "Q.md": ("```write Q.md\n# A\n\n```\nls\n```\n\nend\n```", "# A\n\n```\nls\n```\n\nend\n"),
    "b.py": ("1. b.py:\n\n   ```write b.py\n   if 1:\n       x\n   ```\n", "if 1:\n    x\n"),
    "src/b.py": ("```write src\\b.py\r\nprint(1)\r\n```\r\n", "print(1)\n"),
    "c.py": ("````write './c.py'\nprint(1)\n````", "print(1)\n"),
}


async def test_odd_blocks_are_read_as_they_are_meant(tmp_path: Path) -> None:
    script: list[Answer | str] = [*(answer for answer, _ in ODD.values()), "Done."]
    _, runner = await run_task(tmp_path, {"o.txt": "o\n"}, "Create them.", script)

    assert {path: read(runner, path) for path in ODD} == {path: text for path, (_, text) in ODD.items()}


async def test_a_block_that_breaks_the_file_is_refused_once_with_the_reason(tmp_path: Path) -> None:
    broken = "```write a.py\ndef f(:\n    return 1\n```"
    files = {"a.py": "def f():\n    return 0\n"}
    _, runner = await run_task(
        tmp_path / "1", files, "Fix a.py", [broken, "```write a.py\ndef f():\n    return 1\n```", "Done."]
    )

    assert last_message(runner, 1).endswith(
        "Nothing was changed: with this block a.py no longer parses: line 1: invalid syntax."
    )
    assert read(runner, "a.py") == "def f():\n    return 1\n"
    said, runner = await run_task(tmp_path / "2", files, "Fix a.py", [broken, broken, "Done."])
    assert [call["status"] for call in said["toolCalls"]] == ["failed", "ok"]
    assert "a.py no longer parses" in said["toolCalls"][1]["result"]["llmContent"]


@pytest.mark.parametrize("asked", ["Remove drop from a.py", "Wirf drop aus a.py raus"])
async def test_what_the_person_names_may_go(tmp_path: Path, asked: str) -> None:
    old = "".join(f"def {name}():\n    return 1\n\n\n" for name in ("one", "two", "three", "drop"))
    new = old[: old.index("def drop")].rstrip() + "\n"
    said, runner = await run_task(tmp_path, {"a.py": old}, asked, [f"```write a.py\n{new}```\n", "Done."])

    assert (read(runner, "a.py"), said["toolCalls"][0]["status"]) == (new, "ok")


async def test_circles_end_the_turn_and_the_end_says_what_was_done(tmp_path: Path) -> None:
    same = "```write a.ini\nx = 1\n```"
    said, _ = await run_task(tmp_path / "1", {"a.ini": "x = 1\n"}, "Fix a.ini", [same] * 9)
    assert (said["reason"], len(said["toolCalls"])) == ("loop", 6)
    assert "No file was changed and no command was run." in said["err"]
    there, back = "```write a.ini\nx = 2\n```", "```write a.ini\nx = 1\n```"
    said, runner = await run_task(tmp_path / "2", {"a.ini": "x = 1\n"}, "Fix a.ini", [there, back] * 9)
    assert said["reason"] == "loop"
    assert read(runner, "a.ini") in ("x = 1\n", "x = 2\n")


@pytest.mark.parametrize(
    ("script", "account"),
    [
        (["I shortened a.py."], ""),
        (["Write this:\n```python\nx = 2\n```", "That is all."], "1 block shown, not carried out."),
        (["It is:\n```\nx = 2\n```"], ""),
        (["I do it.\n```run\n```"] * 2, "1 block shown, not carried out."),
        (["```run\n\n\n```", "```run\n$ \n```\n"], "1 block shown, not carried out."),
        (["```run\nrm o.bin\n```", "Done."], "Ran: rm o.bin (exit code 0)."),
        (
            ["```run\ntouch t.txt\n```", "```run\nrm t.txt\n```", "Done."],
            "Ran: touch t.txt (exit code 0); rm t.txt (exit code 0).",
        ),
        (["```write a.py\nx = 2\n```", "Ok."], "Changed: a.py (+1 -1)."),
    ],
)
async def test_the_turn_closes_with_what_was_in_fact_done(
    tmp_path: Path, script: list[Answer | str], account: str
) -> None:
    said, _ = await run_task(tmp_path, {"a.py": "x = 1\n", "o.bin": "\0\1"}, "Do it.", script)

    assert said["err"].strip() == (f"ollm: {account}" if account else "")


async def test_a_command_is_not_run_twice_in_a_row_without_a_change(tmp_path: Path) -> None:
    look = "```run\ncat a.py\n```"
    said, _ = await run_task(tmp_path, {"a.py": "x = 1\n"}, "What is x?", [look, look, "It is 1."])

    assert [call["status"] for call in said["toolCalls"]] == ["ok", "failed"]


async def test_in_a_large_project_a_name_in_the_request_leads_to_the_file(tmp_path: Path) -> None:
    files = {f"a/f{n:03}.py": f"def number_{n}():\n    return {n}\n" for n in range(420)}
    files["z/count_parcels.py"] = "def count_parcels():\n    return 4711\n"
    _, runner = await run_task(tmp_path, files, "Was liefert count_parcels?", ["4711."])

    assert "z/count_parcels.py:\n```\ndef count_parcels():" in last_message(runner, 0)


async def test_in_the_chat_one_key_runs_a_shown_command_after_the_same_question_as_the_models(tmp_path: Path) -> None:
    async with running(tmp_path, ["Like this:\n```bash\nrm a.txt\n```", "That is how.", "I see."]) as runner:
        (runner.workspace / "a.txt").write_text("x\n")
        async with at_terminal(runner, "--new") as terminal:
            terminal.type(f"How do I delete a.txt?{ENTER}")
            await terminal.wait_for("1 block shown, not carried out", "Alt-R runs the command shown")
            terminal.type("\x1br")
            await terminal.wait_for("rm a.txt", "always")
            assert (runner.workspace / "a.txt").exists()
            terminal.type("y")
            assert await terminal.wait_until(lambda: not (runner.workspace / "a.txt").exists())
            await terminal.wait_for("no output")
            terminal.type(f"And now?{ENTER}")
            await terminal.wait_for("I see.")
            terminal.type(CTRL_D)
            await terminal.ended()

    assert "The user ran a command that you showed:\n```\nrm a.txt\n```" in last_message(runner, 2)
    assert runner.sessions()[0]["toolCalls"] == []
