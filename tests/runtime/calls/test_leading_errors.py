"""Errors that lead on: the call that was probably meant is written out."""

from pathlib import Path
from typing import Any

import pytest

from ollm.runtime.calls.leading_errors import find_meant_tool, find_near_file, rename_parameters, suggest_call
from tests.cli.running import running
from tests.servers.answers import Answer


@pytest.mark.parametrize(
    ("tool", "arguments", "led"),
    [
        ("read_file", {"path": "src/*.py"}, 'Call glob {"pattern": "src/*.py"}'),
        ("read_file", {"path": "src/ap.py"}, 'Did you mean src/app.py? Call read_file {"path": "src/app.py"}'),
        ("read_file", {"path": "app.py"}, 'Did you mean src/app.py? Call read_file {"path": "src/app.py"}'),
        ("readfile", {"path": "src/app.py"}, "x = 1\n"),
        ("ReadFile", {"file_path": "src/app.py"}, "x = 1\n"),
        ("bash", {"command": "echo said"}, "said\n"),
        ("bash", {"script": "echo said"}, "write_todos."),
        ("read_file", {"pth": "src/app.py"}, "x = 1\n"),
        ("read_file", {"pth": "src/app.py", "path": "src/none.py"}, 'Call read_file {"path": "src/none.py"}'),
        ("raed_file", {"path": "src/app.py"}, 'Call read_file {"path": "src/app.py"}'),
        ("read_file", {"path": "quite/another.rs"}, "does not exist."),
        ("recall", {"query": "x", "messageId": 3, "callId": "c1"}, 'Call recall {"query": "x"}'),
        ("shell", {"command": "ls", "id": "1"}, 'Call shell {"command": "ls"}'),
        ("shell", {"command": "echo said", "id": ""}, "said\n"),
    ],
)
async def test_the_call_that_was_meant_is_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], led: str
) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", "native")
    async with running(tmp_path, [Answer(calls=[(tool, arguments)]), "Done."]) as runner:
        (runner.workspace / "src").mkdir()
        (runner.workspace / "src" / "app.py").write_text("x = 1\n")
        (runner.workspace / ".secret.py").write_text("x = 1\n")
        await runner.run("-p", "Look at it.", "--yes")

    assert runner.server.chats[1]["messages"][-1]["content"].endswith(led)


LONG = "x" * 380


@pytest.mark.parametrize(
    ("kind", "tool", "arguments", "led"),
    [
        ("UnknownTool", "zzz", {"path": "a"}, ""),
        ("UnknownTool", "BASH", {"command": "ls"}, 'Call shell {"command": "ls"}'),
        ("UnknownTool", "bash", {"cmd": "ls"}, ""),
        ("UnknownTool", "bash", "ls", ""),
        ("ValidationError", "read_file", {"path": "a"}, ""),
        ("FileNotFound", "write_file", {"path": "ap.py"}, ""),
        ("FileNotFound", "read_file", {"path": 3}, ""),
        ("Denied", "read_file", {"path": "ap.py"}, ""),
        (
            "FileNotFound",
            "outline",
            {"path": "src/ap.py"},
            'Did you mean src/app.py? Call outline {"path": "src/app.py"}',
        ),
        ("FileNotFound", "edit_file", {"path": "src/ap.py", "x": LONG}, "Did you mean src/app.py?"),
        (
            "FileNotFound",
            "read_file",
            {"path": "util.py"},
            'Did you mean b/util.py? Call read_file {"path": "b/util.py"}',
        ),
        (
            "FileNotFound",
            "read_file",
            {"path": "same.py"},
            'Did you mean a/same.py? Call read_file {"path": "a/same.py"}',
        ),
        ("FileNotFound", "read_file", {"path": "hidden.py"}, ""),
        ("FileNotFound", "read_file", {"path": "b/util.?y"}, 'Call glob {"pattern": "b/util.?y"}'),
    ],
)
def test_what_is_led_to(tmp_path: Path, kind: str, tool: str, arguments: Any, led: str) -> None:
    for name in (
        *("src/app.py", "b/util.py", "a/same.py", "b/same.py"),
        *(".git/hidden.py", "node_modules/hidden.py", "a/.hidden.py"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    assert suggest_call(kind, "", tool, arguments, [], tmp_path) == led


def test_a_call_is_written_out_up_to_400_characters_and_few_enough_files_are_looked_at(tmp_path: Path) -> None:
    for length, written in ((385, True), (386, False)):
        said = suggest_call("UnknownTool", "", "bash", {"command": "x" * length}, [], tmp_path)
        assert bool(said) is written
    for number in range(2_000):
        (tmp_path / f"f{number}").touch()
    assert find_near_file("x/f7", tmp_path) == "f7"
    (tmp_path / "f2000").touch()
    assert find_near_file("x/f7", tmp_path) == ""


@pytest.mark.parametrize(
    ("name", "arguments", "known", "meant"),
    [
        ("bash", {"command": "ls"}, ["shell", "read_file"], "shell"),
        ("Bash", {"command": "ls"}, ["shell"], "shell"),
        ("bash", {"command": "ls"}, ["read_file"], ""),
        ("bash", {"script": "ls"}, ["shell"], ""),
        ("bash", "command", ["shell"], ""),
        ("python", {"command": "ls"}, ["shell"], ""),
        ("ReadFile", {}, ["write_file", "read_file"], "read_file"),
        ("read-file", {}, ["read_file", "readFile"], ""),
        ("reed_file", {}, ["read_file"], ""),
    ],
)
def test_a_tool_is_meant_where_nobody_would_have_to_guess(
    name: str, arguments: Any, known: list[str], meant: str
) -> None:
    assert find_meant_tool(name, arguments, known) == meant


NEAR = '- pth: no such parameter; did you mean "path"?'


@pytest.mark.parametrize(
    ("message", "arguments", "renamed"),
    [
        (NEAR, {"pth": "a", "x": 1}, {"path": "a", "x": 1}),
        (NEAR, {"pth": "a", "path": "b"}, {}),
        (NEAR, "pth", {}),
        ("- path: it is missing", {"pth": "a"}, {}),
    ],
)
def test_parameters_get_the_names_that_were_meant(message: str, arguments: Any, renamed: dict[str, Any]) -> None:
    assert rename_parameters(message, arguments) == renamed


@pytest.mark.parametrize(
    ("message", "arguments", "led"),
    [
        (NEAR, {"pth": "a"}, 'Call recall {"path": "a"}'),
        ("Give exactly one of a, b or c.", {"a": 1, "b": 2, "c": 3, "x": 4}, 'Call recall {"a": 1, "x": 4}'),
        ("Give exactly one of a, b or c.", {"b": 2, "x": 4}, ""),
        ("- a: it is missing", {"b": 2}, ""),
    ],
)
def test_arguments_that_fail_a_check_are_written_as_they_pass(
    tmp_path: Path, message: str, arguments: Any, led: str
) -> None:
    assert suggest_call("ValidationError", message, "recall", arguments, [], tmp_path) == led


def test_the_nearest_name_is_the_tool_to_call(tmp_path: Path) -> None:
    assert (
        suggest_call("UnknownTool", "", "raed", {"path": "a"}, ["read", "load"], tmp_path) == 'Call read {"path": "a"}'
    )
    assert suggest_call("UnknownTool", "", "run", {"path": "a"}, ["read"], tmp_path) == 'Call read {"path": "a"}'
