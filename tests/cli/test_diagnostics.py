"""Errors that language servers find after an edit reach the model once, in time or with the next result."""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.running import Runner, running
from tests.extensions.raw_servers import configure
from tests.servers.answers import Answer

SCRIPT = str(Path(__file__).parents[1] / "servers" / "language_server.py")


def edit(old: str, new: str, path: str = "app.py") -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "edits": [{"target": old, "replacement": new}]}


def use_server(runner: Runner, *words: str, **settings: Any) -> None:
    """Let the server of the tests check Python, and put a file there that has an error already."""
    command = [sys.executable, SCRIPT, *words, str(runner.home)]
    seen = {"readable": [sys.prefix, str(Path(SCRIPT).parent)]}  # a checkout may lie where the sandbox hides it
    configure(runner, tools={"diagnostics": {"languages": {"python": {"command": command}}, **settings}}, sandbox=seen)
    (runner.workspace / "app.py").write_text("helper = BADold\n")


def results(runner: Runner) -> list[str]:
    return [message["content"] for message in runner.server.chats[-1]["messages"] if message["role"] == "tool"]


def left_over(runner: Runner) -> list[int]:
    found = ((process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [pid for pid, words in found if SCRIPT in words and str(runner.home) in words]


@pytest.mark.parametrize("kind", ["push", "sparse"])
async def test_only_new_errors_are_reported_and_each_once(tmp_path: Path, kind: str) -> None:
    calls = [
        edit("helper", "# moved\nhelper"),
        edit("# moved", "x = BADnew  # WARNnew"),
        edit("BADold", "BADold + 1"),
        ("write_file", {"path": "more.py", "content": "y = BADmore\n"}),
        ("write_file", {"path": "more.txt", "content": "BADtext\n"}),
    ]
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        use_server(runner, kind, timeout=20)
        assert (await runner.run("-p", "go", "--yes")).code == 0
        moved, new, again, more, text = results(runner)

        assert "errors" not in moved + again + text
        assert new.endswith(
            "New errors (python):\napp.py:1:1 BADnew is wrong (c)".replace("python", Path(sys.executable).name)
        )
        assert more.endswith("more.py:1:1 BADmore is wrong (c)")
        assert left_over(runner) == []


async def test_errors_that_an_edit_brings_to_files_that_import_it_are_reported(tmp_path: Path) -> None:
    calls = [edit("BADold", "1"), edit("helper", "renamed"), edit("renamed", "helper")]
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        use_server(runner, "elsewhere", timeout=20)
        (runner.workspace / "uses.py").write_text("from app import helper, BADold\n")
        (runner.workspace / "alone.py").write_text("helper = 'in app'\n")
        await runner.run("-p", "go", "--yes")
        first, renamed, back = results(runner)

        assert renamed.endswith(":\nuses.py:5:1 helper is gone (c)")
        assert "errors" not in first + back


@pytest.mark.slow
async def test_late_errors_come_once_with_a_later_result(tmp_path: Path) -> None:
    waits = [("shell", {"command": f"sleep {seconds}"}) for seconds in (2, 2.1, 2.2, 2.3)]
    calls = [edit("BADold", "1"), edit("1", "BADlate"), *waits]
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        use_server(runner, "slow", timeout=0.2)
        await runner.run("-p", "go", "--yes")
        fixed, changed, *later = results(runner)

        assert "errors" not in fixed + changed
        assert "".join(later).count("app.py:1:1 BADlate is wrong (c)") == 1


@pytest.mark.slow
async def test_files_that_commands_change_are_checked_but_no_file_outside(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("BADsecret\n")
    lines = ["echo BADshell >> app.py", "sleep 3", f"rm app.py; ln -s {secret} app.py", "sleep 2", "true"]
    calls = [edit("BADold", "1"), *(("shell", {"command": line}) for line in lines)]
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        use_server(runner, "push", timeout=20)
        await runner.run("-p", "go", "--yes")
        _, changed, slept, *others = results(runner)

        assert "errors" not in changed + "".join(others)
        assert slept.endswith("app.py:2:1 BADshell is wrong (c)")


FAULTS = {
    "die": "no such option",
    "refuse": "refused to start: no compiler",
    "crash": "out of memory",
    "garbage": "does not speak the language server protocol",
    "flood": "sends too much",
    "hang": "",
    "mute": "",
}


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_faulty_server_is_reported_once_and_the_parser_checks_instead(tmp_path: Path, kind: str) -> None:
    breaks = [edit("helper = BADold", "def f(:"), *(edit("def", f"# {number}\ndef") for number in range(5))]
    calls = [*breaks, ("diagnostics", {})]
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        use_server(runner, kind, timeout=3 if FAULTS[kind] else 0.5)
        began = time.monotonic()
        done = await runner.run("-p", "go", "--yes")

        assert (done.code, done.out) == (0, "Done.\n")
        assert time.monotonic() - began < 25
        assert "app.py no longer parses" in results(runner)[0]
        assert results(runner)[-1].startswith("No errors "), results(runner)[-1]
        assert done.err.count("The language server") == (1 if FAULTS[kind] else 0), done.err
        assert FAULTS[kind] in done.err
        log = (runner.home / "logs" / "ollm.log").read_text() if FAULTS[kind] else ""
        assert log.count("A language server stopped") <= 3
        assert left_over(runner) == []


async def test_an_edit_that_is_stopped_while_it_waits_counts_as_made(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[edit("BADold", "1")]), "Done."]) as runner:
        use_server(runner, "hang", timeout=20)
        process = await runner.start("-p", "go", "--yes")
        while not left_over(runner):
            await asyncio.sleep(0.1)
        process.send_signal(signal.SIGINT)

        assert await process.wait() == 130
        (session,) = runner.sessions()
        assert [call["status"] for call in session["toolCalls"]] == ["ok"]
        assert left_over(runner) == []


async def test_a_server_runs_in_the_reading_box(tmp_path: Path) -> None:
    async with running(
        tmp_path, [Answer(calls=[edit("BADold", "1"), ("diagnostics", {"paths": ["app.py"]})]), "Done."]
    ) as runner:
        use_server(runner, "probe", str(runner.server.base_url.rpartition(":")[2].partition("/")[0]), timeout=20)
        await runner.run("-p", "go", "--yes")

        assert "escaped: []" in results(runner)[1]
        assert not (runner.workspace / "made").exists()


async def test_a_program_of_the_project_is_started_only_if_the_project_is_trusted(tmp_path: Path) -> None:
    program = tmp_path / "project" / ".venv" / "bin" / "pyright-langserver"
    calls = [Answer(calls=[edit("BADold", "BADnew")]), "Done.", Answer(calls=[edit("BADnew", "BADnewer")]), "Done."]
    async with running(tmp_path, calls) as runner:
        use_server(runner, "push", timeout=20, languages={})
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {SCRIPT} push\n")
        program.chmod(0o755)
        await runner.run("-p", "go", "--yes")
        assert "errors" not in results(runner)[0]
        assert "pyright" not in (await runner.run("doctor")).out

        await runner.run("trust")
        assert f"python: {program}" in (await runner.run("doctor")).out
        await runner.run("-p", "go", "--yes")
        assert "New errors (pyright):\napp.py:1:1 BADnewer is wrong (c)" in results(runner)[0]


async def test_a_server_that_runs_code_of_the_project_needs_trust(tmp_path: Path) -> None:
    calls = [Answer(calls=[edit("BADold", f"BAD{n}", "a.ts"), ("diagnostics", {"paths": ["a.ts"]})]) for n in (1, 2)]
    async with running(tmp_path, [calls[0], "Done.", calls[1], "Done."]) as runner:
        command = [sys.executable, SCRIPT, "push", str(runner.home)]
        use_server(runner, timeout=20, languages={"typescript": {"command": command}})
        for after, known in (("No report by a language server: a.ts.", False), ("a.ts:1:1 error: BAD2 is wrong", True)):
            (runner.workspace / "a.ts").write_text("BADold")
            await runner.run("-p", "go", "--yes")
            edited, listed = results(runner)
            assert after in listed
            assert ("New errors" in edited) is known
            await runner.run("trust")


@pytest.mark.parametrize("settings", [{"enabled": False}, {"languages": {"python": "off"}}])
async def test_servers_can_be_turned_off(tmp_path: Path, settings: dict[str, Any]) -> None:
    async with running(tmp_path, [Answer(calls=[edit("BADold", "BADnew")]), "Done."]) as runner:
        use_server(runner, "push", **{"timeout": 20, **settings})
        await runner.run("-p", "go", "--yes")

        assert "errors" not in results(runner)[0]


async def test_mistakes_in_the_settings_of_a_language_are_named(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        use_server(runner, "push", languages={"python": {"comand": "x"}, "lua": {"command": "x"}, "go": 1})
        done = await runner.run("config", "check")

        assert done.code == 2
        assert "languages.python: unknown key comand" in done.out + done.err
        assert "languages.lua: expected command and suffixes" in done.out + done.err
        assert "languages.go: expected off" in done.out + done.err


async def test_the_tool_and_the_command_list_errors_and_warnings(tmp_path: Path) -> None:
    asked = [Answer(calls=[("diagnostics", arguments)]) for arguments in ({"paths": ["app.py", "odd.json"]}, {})]
    async with running(tmp_path, [*asked, "Done."]) as runner:
        use_server(runner, "push")
        (runner.workspace / "app.py").write_text("x = 1\nBADone\nWARNtwo\n")
        (runner.workspace / "odd.json").write_text("{")
        await runner.run("-p", "go")
        named, known = results(runner)

        assert named.splitlines()[:2] == [
            "app.py:2:1 error: BADone is wrong (c)",
            "app.py:3:1 warning: WARNtwo is wrong (c)",
        ]
        assert "odd.json: Expecting" in named
        assert "running" in known
        shown = await runner.run("-p", "/diagnostics app.py")
        assert "error: BADone is wrong" in shown.out
        assert json.dumps(shown.err) == '""'
