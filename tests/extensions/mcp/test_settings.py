"""Settings of MCP servers, ours and those of other clients."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import UsageError
from ollm.domain.text import expand_variables
from ollm.extensions.mcp.settings import (
    McpServer,
    convert_entry,
    read_foreign_file,
    read_project_servers,
    read_servers,
)
from tests.cli.running import running
from tests.extensions.raw_servers import raw_entry, shown_tools


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        ({"a b": {"command": "x"}}, "mcpServers.a b: expected a name of"),
        ({"a__b": {"command": "x"}}, "a name of"),
        ({"a": "x"}, "a mapping with command or url"),
        ({"a": {}}, "either command or url"),
        ({"a": {"command": "x", "url": "http://x"}}, "either command or url"),
        ({"a": {"command": ""}}, "command: expected"),
        ({"a": {"url": "file:///x"}}, "url: expected"),
        ({"a": {"command": "x", "args": "y"}}, "args: expected"),
        ({"a": {"command": "x", "env": ["y"]}}, "env: expected a mapping"),
        ({"a": {"command": "x", "startTimeout": -1}}, "startTimeout: expected"),
        ({"a": {"command": "x", "include": "y"}}, "include: expected"),
        ({"a": {"command": "x", "timeout": 0}}, "timeout: expected"),
        ({"a": {"command": "x", "type": "sse"}}, "type: sse needs a url"),
    ],
)
def test_a_mistake_in_a_server_is_told_and_the_others_stand(configured: dict[str, object], said: str) -> None:
    servers, problems = read_servers({**configured, "good": {"command": "y", "args": [1], "env": {"A": 2}}})

    assert [(server.name, server.args, server.env) for server in servers] == [("good", ("1",), {"A": "2"})]
    assert len(problems) == 1
    assert said in problems[0]


def read_one(entry: object, name: str = "s") -> McpServer | str:
    servers, problems = read_servers({name: entry})
    return servers[0] if servers else problems[0]


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl"])
def test_an_address_has_many_names(key: str) -> None:
    found = read_one({key: "https://x/mcp", "headers": {"K": 1}})

    assert found == McpServer(name="s", url="https://x/mcp", headers={"K": "1"})


@pytest.mark.parametrize(
    ("entry", "disabled", "boxed"),
    [
        ({}, False, True),
        ({"disabled": True}, True, True),
        ({"disabled": "yes"}, False, True),
        ({"enabled": False}, True, True),
        ({"enabled": True}, False, True),
        ({"sandbox": True}, False, True),
        ({"sandbox": "on"}, False, True),
        ({"sandbox": False}, False, False),
    ],
)
def test_a_server_is_on_and_boxed_unless_its_entry_says_otherwise(
    entry: dict[str, object], disabled: bool, boxed: bool
) -> None:
    found = read_one({"command": "run", **entry})

    assert isinstance(found, McpServer)
    assert (found.disabled, found.boxed) == (disabled, boxed)
    assert (found.timeout, found.start_timeout) == (120.0, 30.0)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "1"),
        ("x${A}y${A}", "x1y1"),
        ("${B}", "${B}"),
        ("${B:-or}", "or"),
        ("${B:-}", ""),
        ("${A:-or}", "1"),
        ("$A ${1} ${}", "$A ${1} ${}"),
    ],
)
def test_variables_are_replaced_by_what_they_hold_or_by_what_stands_beside(text: str, filled: str) -> None:
    assert expand_variables(text, {"A": "1"}) == filled


TOOLS = [{"name": "now", "description": "The time.", "inputSchema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        (".mcp.json", lambda entry: {"mcpServers": {"clock": entry}}),
        (".cursor/mcp.json", lambda entry: {"mcpServers": {"clock": {**entry, "alwaysAllow": ["now"]}}}),
        (".vscode/mcp.json", lambda entry: {"servers": {"clock": {"type": "stdio", **entry}}, "inputs": []}),
        (".gemini/settings.json", lambda entry: {"theme": "x", "mcpServers": {"clock": {**entry, "timeout": 30000, "trust": True}}}),
    ],
)  # fmt: skip
async def test_the_files_of_other_clients_are_imported(tmp_path: Path, name: str, wrap: Any) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        file = runner.workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(wrap(raw_entry(tmp_path, "clock", tools=TOOLS))))
        imported = await runner.run("mcp", "import", str(file))
        listed = json.loads((await runner.run("mcp", "list", "--json")).out)
        done = await runner.run("-p", "hi")

    assert imported.code == 0, imported.err
    assert [server["name"] for server in listed] == ["clock"]
    assert ("not taken over" in imported.err) == (name in (".cursor/mcp.json", ".gemini/settings.json"))
    assert "clock__now" in shown_tools(runner.server.chats[0])
    assert done.code == 0


async def test_an_entry_that_is_no_server_loses_itself_and_no_other(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        servers = {
            "both": {"command": "a", "url": "http://b"},
            "ws": {"type": "websocket", "url": "http://b"},
            "list": ["a"],
            "a b": {"command": "first"},
            "a_b": {"command": "second"},
        }
        (runner.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        (runner.workspace / ".cursor").mkdir()
        (runner.workspace / ".cursor" / "mcp.json").write_text("{")
        (runner.workspace / ".vscode").mkdir()
        (runner.workspace / ".vscode" / "mcp.json").write_text(json.dumps({"servers": {"last": {"command": "c"}}}))
        imported = await runner.run("mcp", "import", HOME=str(tmp_path))
        listed = json.loads((await runner.run("mcp", "list", "--json", HOME=str(tmp_path))).out)

    assert imported.code == 0, imported.err
    assert {server["name"]: server["place"] for server in listed} == {"a_b": "first", "last": "c"}
    for word in ("both of", "ws of", "list is no mapping", "a_b is named twice", "is not JSON"):
        assert word in imported.err, (word, imported.err)


async def test_a_project_file_is_used_once_the_workspace_is_trusted(tmp_path: Path) -> None:
    async with running(tmp_path, ["Before.", "After."]) as runner:
        entry = {"mcpServers": {"clock": raw_entry(tmp_path, "clock", tools=TOOLS)}}
        (runner.workspace / ".mcp.json").write_text(json.dumps(entry))
        before = await runner.run("-p", "hi")
        await runner.run("trust")
        await runner.run("-p", "hi")

    first, second = runner.server.chats
    assert "clock__now" not in shown_tools(first)
    assert "clock__now" in shown_tools(second)
    assert before.code == 0


@pytest.mark.parametrize(
    ("entry", "ours", "left"),
    [
        ({"command": "run", "args": ["a"]}, {"command": "run", "args": ["a"]}, []),
        ({"httpUrl": "http://x"}, {"httpUrl": "http://x"}, []),
        ({"command": "r", "includeTools": ["a"]}, {"command": "r", "include": ["a"]}, []),
        ({"command": "r", "excludeTools": ["a"]}, {"command": "r", "exclude": ["a"]}, []),
        ({"command": "r", "timeout": 5000}, {"command": "r", "timeout": 5.0}, []),
        ({"command": "r", "timeout": 1000}, {"command": "r", "timeout": 1.0}, []),
        ({"command": "r", "timeout": 999}, {"command": "r", "timeout": 999}, []),
        ({"command": "r", "timeout": 9_999_999}, {"command": "r", "timeout": 3600.0}, []),
        ({"command": "r", "env": {"A": "${env:B}"}}, {"command": "r", "env": {"A": "${B}"}}, []),
        ({"command": "r", "args": ["${workspaceFolder}/x"]}, {"command": "r", "args": ["./x"]}, []),
        ({"command": "r", "disabled": True}, {"command": "r", "disabled": True}, []),
        ({"command": "r", "colour": 1}, {"command": "r"}, ["colour has no meaning here and was left out"]),
    ],
)
def test_an_entry_is_put_into_our_words(entry: dict[str, Any], ours: dict[str, Any], left: list[str]) -> None:
    assert convert_entry(entry) == (ours, left)


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"one": {"command": "r"}}},
        {"servers": {"one": {"command": "r"}}},
        {"mcp": {"servers": {"one": {"command": "r"}}}},
        {"mcpServers": {"one": {"command": "r"}}, "projects": []},
    ],
)
def test_servers_are_found_wherever_a_client_puts_them(tmp_path: Path, document: dict[str, Any]) -> None:
    file = tmp_path / "f.json"
    file.write_text(json.dumps(document))

    assert read_foreign_file(file, tmp_path) == ({"one": {"command": "r"}}, [])


def test_what_is_kept_for_a_project_counts_for_that_one_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text(json.dumps({"projects": {str(tmp_path): {"mcpServers": {"one": {"command": "r"}}}}}))

    assert list(read_foreign_file(file, tmp_path)[0]) == ["one"]
    assert read_foreign_file(file, tmp_path / "other") == ({}, [])


@pytest.mark.parametrize(("data", "said"), [(b"{oops", "is not JSON"), (b"\xff\xfe", "cannot be read")])
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / ".mcp.json"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read_foreign_file(file, tmp_path)
    servers, (note,) = read_project_servers(tmp_path)
    assert servers == {}
    assert said in note
