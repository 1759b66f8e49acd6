"""Checks: formatters after an edit, and tests at the end of a turn until they pass."""

from pathlib import Path
from typing import Any

from tests.cli.running import Runner, running, texts
from tests.servers.answers import Answer

FORMAT = "checks: [{files: '*.py', run: \"sed -i 's/  */ /g' {files}\", when: edit}]\n"
TEST = "checks: [{files: ['notes/**'], run: 'grep done notes/a.txt || { echo not yet; exit 3; }', maxRounds: 2}]\n"


def write(path: str, content: str) -> Answer:
    return Answer(calls=[("write_file", {"path": path, "content": content, "overwrite": True})])


def configure(runner: Runner, text: str) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(text, encoding="utf-8")


def read_results(runner: Runner) -> list[dict[str, Any]]:
    return [call["result"] for call in runner.sessions()[-1]["toolCalls"]]


async def test_a_formatter_changes_an_edited_file_and_the_model_knows_its_text(tmp_path: Path) -> None:
    edit = Answer(calls=[("edit_file", {"path": "-a.py", "edits": [{"target": "x = 1", "replacement": "y   = 1"}]})])
    async with running(tmp_path, [write("-a.py", "x   =  1\n"), edit, write("b.md", "x   y\n"), "Done."]) as runner:
        configure(runner, FORMAT)
        done = await runner.run("-p", "write it", "--yes")
        written = (runner.workspace / "-a.py").read_text()
        undone = [await runner.run("--continue", "-p", "/undo") for _ in range(2)]

    assert done.code == 0, done.err
    created, edited, other = read_results(runner)
    assert "A check changed the file" in created["llmContent"]
    assert "+x = 1" in created["llmContent"]
    assert "error" not in edited
    assert written == "y = 1\n"
    assert "check" not in other["llmContent"]
    assert [one.code for one in undone] == [0, 0], [one.err for one in undone]
    assert not (runner.workspace / "b.md").exists()
    assert (runner.workspace / "-a.py").read_text() == "x = 1\n"


async def test_a_failing_check_goes_to_the_model_until_it_passes(tmp_path: Path) -> None:
    script = [write("notes/a.txt", "todo\n"), "Finished.", write("notes/a.txt", "done\n"), "Now it is.", "Hello."]
    async with running(tmp_path, script) as runner:
        configure(runner, TEST)
        done = await runner.run("-p", "write it", "--yes")
        after = await runner.run("--continue", "-p", "hi")

    assert done.code == 0, done.err
    assert "Check passed" in done.err
    last = runner.server.chats[2]["messages"][-1]
    assert last["role"] == "user"
    assert "not yet" in last["content"]
    assert "exit code 3" in last["content"]
    assert [role for role, _ in texts(runner.sessions()[-1])][:6] == [
        *("user", "assistant", "tool", "assistant", "system", "assistant")
    ]
    assert "Check" not in after.err


async def test_a_check_that_never_passes_ends_the_turn_after_its_rounds(tmp_path: Path) -> None:
    async with running(tmp_path, [write("notes/a.txt", "todo\n"), "One.", "Two.", "Three."]) as runner:
        configure(runner, TEST)
        done = await runner.run("-p", "write it", "--yes")

    assert done.code == 1, done.err
    assert "Check still fails" in done.err
    assert "Stopped after 2 rounds" in done.err
    assert len(runner.server.chats) == 4


async def test_checks_of_a_workspace_run_only_if_it_is_trusted(tmp_path: Path) -> None:
    script = [write("a.txt", "one\n"), "Done.", write("a.txt", "two\n"), "Done."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / ".ollm").mkdir()
        config = runner.workspace / ".ollm" / "config.yaml"
        config.write_text("checks: [{files: '*', run: touch seen}]\n", encoding="utf-8")
        await runner.run("-p", "write it", "--yes")
        before = (runner.workspace / "seen").exists()
        await runner.run("trust")
        await runner.run("-p", "write it", "--yes")
        after = (runner.workspace / "seen").exists()
        configure(runner, "checks: [{files: '*', when: often}]\n")
        wrong = await runner.run("config", "check")

    assert (before, after) == (False, True)
    assert wrong.code == 2
    assert "checks[0]: when: invalid enum value 'often'" in wrong.err + wrong.out


async def test_a_check_that_removes_or_breaks_the_file_is_reported(tmp_path: Path) -> None:
    async with running(tmp_path, [write("a.py", "x\n"), "Done.", write("b.py", "x\n"), "Done."]) as runner:
        configure(runner, "checks: [{files: '*.py', run: 'rm {files}; mkdir {files}; echo out; exit 3', when: edit}]\n")
        await runner.run("-p", "write it", "--yes")
        removed = read_results(runner)[-1]
        configure(runner, "checks: [{files: '*.py', run: \"printf '\\\\377\\\\000' > {files}\", when: edit}]\n")
        await runner.run("-p", "write it", "--yes")

    assert "error" not in removed
    assert "A check removed the file." in removed["llmContent"]
    assert "out\n" in removed["llmContent"]
    assert "A check made it a binary file." in read_results(runner)[-1]["llmContent"]


CHECK = ("--check", "grep done a.txt || { echo not yet; exit 3; }")


async def test_one_attempt_works_on_until_its_check_passes(tmp_path: Path) -> None:
    async with running(tmp_path, ["Nothing to do.", write("a.txt", "done\n"), "Now it is."]) as runner:
        done = await runner.run("-p", "write it", "--yes", *CHECK)

    assert done.code == 0, done.err
    assert "Check passed" in done.err
    assert "not yet" in runner.server.chats[1]["messages"][-1]["content"]


async def test_one_attempt_whose_check_still_fails_exits_with_1(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        failed = await runner.run("-p", "write it", "--yes", *CHECK, "--check-rounds", "1")
        unfit = [
            await runner.run("-p", "x", "--check", " "),
            await runner.run("-p", "x", "--check-rounds", "2"),
            await runner.run("-p", "x", "--best-of", "2", "--check", "true", "--check-rounds", "2"),
            await runner.run("-p", "-c"),
        ]

    assert failed.code == 1
    assert "Stopped after 1 round" in failed.err
    assert len(runner.server.chats) == 2
    assert [one.code for one in unfit] == [2] * 4
    assert "-c is an option" in unfit[3].err
