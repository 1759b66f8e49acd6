"""MCP servers through the command: configured, tried, called by a model, and ended."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import psutil

from tests.cli.running import Runner, running
from tests.extensions.raw_servers import raw_entry, shown_tools
from tests.servers.answers import Answer

SCRIPT = str(Path(__file__).parents[1] / "servers" / "mcp_server.py")


def configure(runner: Runner, servers: dict[str, Any], **more: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"mcpServers": servers, **more}))


def of(kind: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SCRIPT, kind], **more}


def left_over(kind: str) -> list[int]:
    found = ((process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [pid for pid, words in found if SCRIPT in words and kind in words]


async def test_a_model_calls_a_server_under_policy_limits_and_an_environment_without_secrets(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("MCP_TEST_SECRET", "s3cret")
    calls = [
        ("good__add", {"a": 2, "b": 3}),
        ("good__escape", {}),
        ("good__long", {"lines": 5000}),
        ("good__variables", {}),
    ]
    async with running(tmp_path, [Answer(calls=calls), "Done.", Answer(calls=calls[:1]), "I see."]) as runner:
        configure(
            runner,
            {"good": of("good", env={"GIVEN": "${MCP_TEST_SECRET}"})},
            policy={"rules": [{"tool": "good__variables", "action": "allow"}]},
        )
        done = await runner.run("-p", "add", "--yes")
        assert done.out == "Done.\n", done.err
        first, second = runner.server.chats
        shown = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
        assert set(shown["good__add"]["parameters"]["properties"]) == {"a", "b"}
        summed, red, long, variables = [message["content"] for message in second["messages"][-4:]]
        assert (summed, red) == ("the sum is 5", "red")
        assert "omitted" in long
        assert len(long) < 31_000
        assert "GIVEN" in variables.split()
        assert "MCP_TEST_SECRET" not in variables.split()
        assert left_over("good") == []

        kept = runner.home / "cache" / "mcp.json"
        kept.write_text(re.sub(r'"timestamp":"20..', '"timestamp":"2001', kept.read_text()))
        refused = await runner.run("-p", "add")
        assert "Traceback" not in refused.err
        assert left_over("good") == []
        assert "Error Denied" in runner.server.chats[3]["messages"][-1]["content"]


async def test_a_workspace_brings_servers_only_when_it_is_trusted(tmp_path: Path) -> None:
    async with running(tmp_path, ["one"]) as runner:
        trace = tmp_path / "trace"
        (runner.workspace / ".ollm").mkdir()
        theirs = {"theirs": of("good", env={"TRACE": str(trace)})}
        (runner.workspace / ".ollm" / "config.yaml").write_text(json.dumps({"mcpServers": theirs}))
        done = await runner.run("-p", "hi")
        assert done.code == 0
        assert not trace.exists()
        assert "theirs__" not in json.dumps(runner.server.chats)
        assert json.loads((await runner.run("mcp", "list", "--json")).out) == []
        await runner.run("trust")
        assert [one["name"] for one in json.loads((await runner.run("mcp", "list", "--json")).out)] == ["theirs"]


async def test_servers_are_added_tried_and_removed_and_comments_stay(tmp_path: Path) -> None:
    async with running(tmp_path, ["Looks fine."]) as runner:
        runner.home.mkdir()
        file = runner.home / "config.yaml"
        file.write_text(
            "# mine\nmcpServers: # servers\n  # first\n  broken: {command: /no/such/program}\n\nmodes: {}\n"
        )
        added = await runner.run(
            "mcp", "add", "good", "--env", "A=1", "--timeout", "60", "--", sys.executable, SCRIPT, "good"
        )
        assert added.code == 0, added.err
        again = await runner.run("mcp", "add", "good", "--url", "http://localhost:1/mcp")
        assert again.code == 2
        assert "Use --force to replace it" in again.err

        tried = await runner.run("mcp", "test", "--json")
        assert tried.code == 1
        found = {one["name"]: one for one in json.loads(tried.out)}
        assert "there is no program /no/such/program" in found["broken"]["error"]
        assert found["good"]["ok"]
        assert "good__add" in found["good"]["tools"]
        assert found["good"]["prompts"] == ["review"]

        sent = await runner.run("-p", "/mcp good review language=Ada")
        assert sent.out == "Looks fine.\n", sent.err
        assert runner.server.chats[0]["messages"][-1]["content"] == "Review the Ada code here."

        assert (await runner.run("mcp", "remove", "broken")).code == 0
        assert (await runner.run("mcp", "remove", "good")).code == 0
        assert (await runner.run("mcp", "remove", "good")).code == 2
        assert file.read_text() == "# mine\nmcpServers: {} # servers\n  # first\n\nmodes: {}\n"
        assert (await runner.run("config", "check")).code == 0
        assert (await runner.run("mcp", "list")).out == "No MCP servers configured.\n"


async def test_mistakes_in_hooks_and_servers_are_found_by_the_check(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, {"bad": {"comand": "x"}}, hooks={"before-lunch": "true"})
        checked = await runner.run("config", "check")

    assert checked.code == 2
    assert "mcpServers.bad: expected either command or url (unknown key comand" in checked.out
    assert "hooks.before-lunch: unknown event" in checked.out


TOOLS = [{"name": "now", "description": "The time.", "inputSchema": {"type": "object"}}]


async def test_a_server_is_added_as_claude_code_has_it(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        text = json.dumps({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "odd": 1})
        from_json = await runner.run("mcp", "add-json", "one", text)
        http = await runner.run("mcp", "add", "--transport", "http", "two", "https://example.org/mcp")
        listed = json.loads((await runner.run("mcp", "list", "--json")).out)

    assert (from_json.code, http.code) == (0, 0), from_json.err + http.err
    assert "odd has no meaning here" in from_json.err
    assert {server["name"]: server["place"] for server in listed} == {
        "one": "npx -y x",
        "two": "https://example.org/mcp",
    }


async def test_an_unknown_key_is_told_and_the_server_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        runner.home.mkdir()
        entry = {**raw_entry(tmp_path, "clock", tools=TOOLS), "gallery": True}
        (runner.home / "config.yaml").write_text(json.dumps({"mcpServers": {"clock": entry}}))
        done = await runner.run("-p", "hi")

    assert "unknown key gallery is ignored" in done.err
    assert "clock__now" in shown_tools(runner.server.chats[0])
