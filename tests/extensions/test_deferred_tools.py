"""Tools from outside that do not fit a window: outlines, and how they are found."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.cli.running import running
from tests.extensions.raw_servers import configure, raw_entry, shown_tools
from tests.servers.answers import Answer
from tests.sizes import size


def make_tool(name: str, told: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": f"The {key} of what {name} does."} for key in ("id", "text")}
    return {
        "name": name,
        "description": told,
        "inputSchema": {"type": "object", "properties": properties, "required": ["id"]},
    }


MANY = [make_tool(f"thing_{number}", f"Do thing number {number} to the garden.") for number in range(60)]

CLICK = make_tool("press_button", "Click a button on a page of the browser.")

FEW = [make_tool("now", "The time."), make_tool("zone", "The time zone.")]


async def test_a_server_that_hung_is_not_waited_for_again(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner:
        entry = {**raw_entry(tmp_path, "slow", tools=FEW, startDelay=30), "startTimeout": 3}
        configure(runner, mcpServers={"slow": entry})
        first = await runner.run("-p", "go")
        second = await runner.run("-p", "go")

    assert "no initialize reply within 3 s" in first.err
    assert "slow did not answer last time" in second.err


async def test_a_tool_that_is_gone_is_not_replaced_by_another_of_its_server(tmp_path: Path) -> None:
    gone = Answer(calls=[("odd__noise", {}), ("docs__read_file", {"path": "a.py"})])
    async with running(tmp_path, [gone, "Done."]) as runner:
        configure(runner, mcpServers={"odd": raw_entry(tmp_path, "odd", tools=[make_tool("die", "End it.")])})
        await runner.run("-p", "go")

    for said, name in zip(runner.server.chats[1]["messages"][-2:], ("odd__noise", "docs__read_file"), strict=True):
        assert f'There is no tool named "{name}"' in said["content"]
        assert "Did you mean" not in said["content"]
        assert "Call " not in said["content"]


@pytest.mark.parametrize("window", [4096, 8192, 32768][: size(1, 3)])
async def test_a_hidden_tool_is_found_by_words_and_called_by_its_name(tmp_path: Path, window: int) -> None:
    script = [
        Answer(calls=[("find_tool", {"query": "click a button in the browser"})]),
        Answer(calls=[("use_tool", {"name": "big__press_button", "arguments": {"id": "ok"}})]),
        "Clicked.",
    ]
    async with running(tmp_path, script, window=window) as runner:
        servers = {"big": raw_entry(tmp_path, "big", tools=[*MANY, CLICK])}
        servers["few"] = raw_entry(tmp_path, "few", tools=FEW)
        configure(runner, mcpServers=servers, provider={"contextWindow": window})
        done = await runner.run("-p", "click ok", "--yes", "-o", "json")

    first, second, third = runner.server.chats
    shown = shown_tools(first)
    assert {"find_tool", "use_tool", "few__now", "few__zone"} <= set(shown)
    assert "big (" in shown["find_tool"]["description"]
    assert second["tools"] == third["tools"]
    added = set(shown_tools(second)) - set(shown)
    assert added <= ({"recall"} if window == 4096 else set()), (
        "recall comes once a small window cuts what find_tool found"
    )
    assert [tool for tool in second["tools"] if tool["function"]["name"] not in added] == first["tools"]
    found = second["messages"][-1]["content"]
    assert "big__press_button: Click a button" in found
    assert '"required":["id"]' in found
    made = json.loads(done.out)["toolCalls"]
    assert [(call["name"], call["status"]) for call in made] == [("find_tool", "ok"), ("big__press_button", "ok")]
    assert made[1]["args"] == {"id": "ok"}


async def test_a_hidden_tool_asks_as_every_other_does(tmp_path: Path) -> None:
    script = [Answer(calls=[("use_tool", {"name": "big__thing_7", "arguments": {"id": "x"}})]), "No."]
    async with running(tmp_path, script) as runner:
        configure(runner, mcpServers={"big": raw_entry(tmp_path, "big", tools=MANY)})
        done = await runner.run("-p", "go", "-o", "json")

    (made,) = json.loads(done.out)["toolCalls"]
    assert (made["name"], made["result"]["error"]["type"]) == ("big__thing_7", "Denied")


async def test_where_everything_fits_nothing_is_to_be_found(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        configure(runner, mcpServers={"few": raw_entry(tmp_path, "few", tools=FEW)})
        await runner.run("-p", "hi")

    assert "find_tool" not in shown_tools(runner.server.chats[0])


async def test_what_is_hidden_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        configure(runner, mcpServers={"big": raw_entry(tmp_path, "big", tools=MANY)})
        await runner.run("-p", "hi")
        said = await runner.run("-p", "/mcp")
        listed = json.loads((await runner.run("-p", "/mcp", "-o", "json")).out)["data"]
        context = await runner.run("context", "show")
        counted = json.loads((await runner.run("context", "show", "--json")).out)["hiddenTools"]

    assert "more by find_tool" in said.out
    assert f"{len(listed[0]['hidden'])} of big" in context.out
    assert counted == {"big": len(listed[0]["hidden"])}
    assert len(listed[0]["hidden"]) + len([n for n in listed[0]["tools"] if n not in listed[0]["hidden"]]) == 60


async def test_include_exclude_and_deny_rules_choose_tools(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        chosen = {"include": ["thing_1*"], "exclude": ["thing_11"]}
        servers = {
            "big": {**raw_entry(tmp_path, "big", tools=MANY), **chosen},
            "few": raw_entry(tmp_path, "few", tools=FEW),
        }
        rules = [{"tool": "few__zone", "action": "deny"}]
        configure(runner, mcpServers=servers, policy={"rules": rules}, provider={"contextWindow": 32768})
        await runner.run("-p", "hi")

    theirs = {name for name in shown_tools(runner.server.chats[0]) if "__" in name}
    wanted = {f"big__thing_{number}" for number in (1, 10, 12, 13, 14, 15, 16, 17, 18, 19)}
    assert theirs == {*wanted, "few__now"}


async def test_in_plan_mode_a_tool_that_a_rule_allows_runs_and_others_do_not(tmp_path: Path) -> None:
    script = [Answer(calls=[("few__now", {"id": "1"}), ("few__zone", {"id": "1"})]), "Done."]
    async with running(tmp_path, script) as runner:
        rules = [{"tool": "few__now", "action": "allow"}]
        configure(runner, mcpServers={"few": raw_entry(tmp_path, "few", tools=FEW)}, policy={"rules": rules})
        done = await runner.run("-p", "plan", "--mode", "plan", "-o", "json")

    theirs = {name for name in shown_tools(runner.server.chats[0]) if "__" in name}
    assert theirs == {"few__now"}
    made = {call["name"]: call["status"] for call in json.loads(done.out)["toolCalls"]}
    assert made["few__now"] == "ok"
    assert made["few__zone"] != "ok"


def extension(folder: Path, adds: dict[str, Any], **modules: str) -> Path:
    folder.mkdir(parents=True)
    manifest = {"name": folder.name, "version": "1", "description": "For a test.", "adds": adds}
    (folder / "extension.yaml").write_text(json.dumps(manifest))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text))
    return folder


async def test_consent_names_the_tools_and_a_failed_add_leaves_nothing(tmp_path: Path) -> None:
    tool = 'class Whisper:\n    """Say it softly."""\n    name = \'whisper\'\n'
    extension(tmp_path / "source", {"tools": {"pair": "it:Whisper"}}, it=tool)
    async with running(tmp_path, []) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("extensions: {enabled: [x]}\nextensions: {}\n")
        failed = await runner.run("extensions", "add", str(tmp_path / "source"), "--yes")
        left = list((runner.home / "extensions").glob("*")) if (runner.home / "extensions").exists() else []
        (runner.home / "config.yaml").write_text("{}")
        done = await runner.run("extensions", "add", str(tmp_path / "source"), "--yes")

    assert failed.code != 0
    assert left == []
    assert "adds tools the model can call, under your policy: pair" in done.err
    assert done.code == 0, done.err
