"""`ollm tools`, as a person types it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.cli.entry import main
from tests.covers import covers


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    monkeypatch.setenv("OLLM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(root)
    return root


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def ollm(workspace: Path, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> Outcome:
        code = main(["tools", *arguments])
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return run


@covers("T1.4")
def test_the_tools_are_listed_by_name_with_their_risk(ollm) -> None:
    plain, document = ollm("list"), ollm("list", "--json").document

    assert "read_file" in plain.out
    names = [tool["name"] for tool in document]
    assert names == sorted(names)
    assert {"read_file", "write_file", "edit_file", "glob", "grep", "ls", "memory", "web_fetch"} <= set(names)
    assert all(set(tool) == {"name", "description", "risk", "readsOnly", "parameters"} for tool in document)


@covers("T2.1", "T10.7")
def test_a_tool_is_run_and_its_result_is_one_document(ollm, workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n", encoding="utf-8")

    done = ollm("run", "read_file", "--args", '{"path": "a.txt"}', "--json")

    assert done.code == 0
    assert done.document == {
        "ok": True,
        "llmContent": "hello\n",
        "returnDisplay": "a.txt: 1 line",
        "error": None,
    }
    assert ollm("run", "read_file", "--args", '{"path": "a.txt"}').out == "hello\n"


@covers("T12.6")
def test_a_failure_is_exit_1_with_its_type_and_message(ollm) -> None:
    done = ollm("run", "read_file", "--args", '{"path": "b.txt"}', "--json")

    assert done.code == 1
    assert done.document["ok"] is False
    assert done.document["error"] == {"type": "FileNotFound", "message": "b.txt does not exist."}
    assert "FileNotFound: b.txt" in ollm("run", "read_file", "--args", '{"path": "b.txt"}').err


@covers("T7.3")
def test_what_policy_asks_about_needs_yes(ollm, workspace: Path) -> None:
    arguments = ("run", "write_file", "--args", '{"path": "a.txt", "content": "x"}', "--json")

    denied = ollm(*arguments)
    assert denied.code == 5
    assert denied.document["error"]["type"] == "Denied"
    assert not (workspace / "a.txt").exists()

    assert ollm(*arguments, "--yes").document["ok"] is True
    assert (workspace / "a.txt").read_text(encoding="utf-8") == "x"


def test_a_grant_answers_as_yes_does(ollm, workspace: Path) -> None:
    arguments = ("run", "write_file", "--args", '{"path": "a.txt", "content": "x"}', "--json")

    assert ollm(*arguments, "--allow", "write_file:a.txt").code == 0


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "/etc/passwd"}),
        ("read_file", {"path": "link"}),
        ("write_file", {"path": ".env", "content": "x"}),
        ("write_file", {"path": ".git/config", "content": "x"}),
        ("write_file", {"path": "../x.txt", "content": "x"}),
        ("read_many_files", {"paths": ["../*"]}),
        ("ls", {"path": ".."}),
    ],
)
def test_yes_does_not_open_what_is_outside_or_protected(ollm, workspace: Path, tool: str, arguments: Any) -> None:
    (workspace / "link").symlink_to("/etc/passwd")

    done = ollm("run", tool, "--args", json.dumps(arguments), "--yes", "--json")

    assert done.code == 5
    assert done.document["error"]["type"] in {"Denied", "OutsideWorkspace"}
    assert "root:" not in done.out
    assert sorted(path.name for path in workspace.iterdir()) == ["link"]


@covers("T12.1")
def test_arguments_that_are_not_json_are_wrong_usage(ollm) -> None:
    done = ollm("run", "read_file", "--args", "{path", "--json")

    assert done.code == 2
    assert done.document["error"]["type"] == "ValidationError"
    assert "--args is not JSON" in done.err


@covers("T12.1")
@pytest.mark.parametrize("arguments", ["[]", "5", '"text"', "null", "true", "[" * 900 + "]" * 900])
def test_arguments_that_are_no_object_are_a_validation_error(ollm, arguments: str) -> None:
    done = ollm("run", "read_file", "--args", arguments, "--json")

    assert done.code == 1
    assert done.document["error"]["type"] == "ValidationError"


def test_an_unknown_tool_offers_the_nearest(ollm) -> None:
    done = ollm("run", "raed_file", "--json")

    assert done.code == 1
    assert done.document["error"]["type"] == "UnknownTool"
    assert "read_file" in done.document["error"]["message"]


def test_a_megabyte_of_arguments_comes_in_on_stdin(ollm, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO

    text = "x" * 1_000_000
    monkeypatch.setattr("sys.stdin", StringIO(json.dumps({"path": "big.txt", "content": text})))

    done = ollm("run", "write_file", "--args", "-", "--yes", "--json")

    assert done.document["ok"] is True
    assert (workspace / "big.txt").stat().st_size == 1_000_000


@covers("T11.1", "T11.5")
def test_notes_survive_from_run_to_run(ollm) -> None:
    ollm("run", "memory", "--args", '{"action": "set", "key": "k", "value": {"a": [1]}}')
    ollm("run", "write_todos", "--args", '{"action": "add", "text": "test it"}')

    assert ollm("run", "memory", "--args", '{"action": "get", "key": "k"}').out == '{"a": [1]}\n'
    assert "test it" in ollm("run", "write_todos", "--args", '{"action": "list"}').out


def test_running_a_tool_leaves_no_session_behind(ollm, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("x", encoding="utf-8")

    ollm("run", "read_file", "--args", '{"path": "a.txt"}')
    ollm("run", "write_file", "--args", '{"path": "b.txt", "content": "x"}', "--yes")

    assert not list((tmp_path / "home").rglob("*.json"))
    assert not list((tmp_path / "home").rglob("*.undo"))
