"""MCP servers through the command: configured, called by models of any size, their prompts and resources."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import ENTER, TAB, at_terminal
from tests.extensions.raw_servers import configure, raw_entry, shown_tools
from tests.servers.answers import Answer

SCRIPT = str(Path(__file__).parents[1] / "servers" / "mcp_server.py")


def of(*words: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SCRIPT, *words], **more}


def left_over(mark: str) -> list[int]:
    """Servers started with this word; other tests may run theirs meanwhile."""
    found = ((process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [pid for pid, words in found if SCRIPT in words and mark in words]


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
            mcpServers={"good": of("good", str(tmp_path), env={"GIVEN": "${MCP_TEST_SECRET}"})},
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
        assert left_over(str(tmp_path)) == []

        kept = runner.home / "cache" / "mcp.json"
        kept.write_text(re.sub(r'"timestamp":"20..', '"timestamp":"2001', kept.read_text()))
        refused = await runner.run("-p", "add")
        assert "Traceback" not in refused.err
        assert left_over(str(tmp_path)) == []
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

        printed = (await runner.run("mcp", "test", "good")).out
        typed = re.search(r"^  (/.*)…", printed, re.MULTILINE)
        assert typed, printed
        sent = await runner.run("-p", f"{typed[1]}Ada")
        assert sent.out == "Looks fine.\n", sent.err
        assert runner.server.chats[0]["messages"][-1]["content"] == "Review the Ada code here."

        assert (await runner.run("mcp", "remove", "broken")).code == 0
        assert (await runner.run("mcp", "remove", "good")).code == 0
        assert (await runner.run("mcp", "remove", "good")).code == 2
        assert file.read_text() == "# mine\nmcpServers: # servers\n  # first\n\nmodes: {}\n"
        assert (await runner.run("config", "check")).code == 0
        assert (await runner.run("mcp", "list")).out == "No MCP servers configured.\n"


async def test_mistakes_in_hooks_and_servers_are_found_by_the_check(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"bad": {"comand": "x"}}, hooks={"before-lunch": "true"})
        checked = await runner.run("config", "check")

    assert checked.code == 2
    assert "mcpServers.bad: expected either command or url; unknown key comand" in checked.out
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


PROMPTS = [
    {
        "name": "review",
        "description": "Review a change",
        "arguments": [{"name": "branch", "required": True}, {"name": "depth"}],
    }
]

RESOURCES = [{"uri": "notes://today", "name": "today"}, {"uri": "notes://tomorrow", "name": "tomorrow"}]


def offer(runner: Runner, directory: Path) -> None:
    desk = raw_entry(directory, "desk", tools=[], prompts=PROMPTS, resources=RESOURCES)
    configure(runner, mcpServers={"desk": desk})


def said(chats: list[dict[str, Any]]) -> str:
    return str(chats[-1]["messages"][-1]["content"])


SENT = {
    "/desk:review branch=main": 'review {"branch": "main"}',
    "/desk:review depth=2 'my branch'": 'review {"branch": "my branch", "depth": "2"}',
}

REFUSED = ("/desk:review a=b", "/desk:review", "/desk:review main 3 extra", "/desk:reviw main", "/nobody:review main")


async def test_a_prompt_is_a_command_and_its_arguments_are_checked(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Done.", "Done."]) as runner:
        offer(runner, tmp_path)
        await runner.run("-p", "hi")
        for typed, sent in SENT.items():
            done = await runner.run("-p", typed)
            assert (done.code, said(runner.server.chats)) == (0, sent), done.err
        for typed in REFUSED:
            done = await runner.run("-p", typed)
            assert (done.code, len(runner.server.chats)) == (2, 3), done.err


async def test_the_chat_completes_prompts_and_attaches_resources(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Reviewed.", "Read."]) as runner:
        offer(runner, tmp_path)
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("›")
            terminal.type(f"hi{ENTER}")
            await terminal.wait_for("Hello.")
            terminal.type("/desk")
            await terminal.wait_for("/desk:review", "Review a change")
            terminal.type(f"{TAB} main{ENTER}")
            await terminal.wait_for("Reviewed.")
            assert 'review {"branch": "main"}' in said(runner.server.chats)
            terminal.type("what about @desk:notes://tom")
            await terminal.wait_for("desk:notes://tomorrow")
            terminal.type(f"{TAB} and mail me@desk:x?{ENTER}")
            await terminal.wait_for("+ desk:notes://tomorrow", "Read.")

    assert "text of notes://tomorrow" in str(runner.server.chats[-1]["messages"])


async def test_resources_are_listed_shown_and_attached(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Notes."]) as runner:
        offer(runner, tmp_path)
        await runner.run("-p", "hi")
        listed = await runner.run("-p", "/resource")
        shown = await runner.run("-p", "/resource desk notes://today")
        await runner.run("-p", "what is in @desk:notes://today?")
        attached = str(runner.server.chats[-1]["messages"])

    assert "@desk:notes://today" in listed.out
    assert "text of notes://today" in shown.out
    assert "text of notes://today" in attached


ZONE = {"type": "object", "properties": {"timezone": {"type": "string"}, "format": {"type": "string"}}}

CLOCK = [
    {
        "name": "get_time",
        "description": "Get the time in a zone",
        "inputSchema": {**ZONE, "required": ["timezone"]},
    }
]

MANY = [
    {
        "name": f"thing_{number}",
        "description": f"Do thing number {number} to what the id names. " * 3,
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    }
    for number in range(60)
]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", "blocks")


@pytest.mark.usefixtures("blocks")
async def test_a_model_that_writes_blocks_is_told_the_tools_with_their_parameters_and_calls_one(tmp_path: Path) -> None:
    script = ["Let me see.\n```call clock__get_time\ntimezone: Europe/Vienna\n```\n", "It is noon."]
    async with running(tmp_path, script, window=16384, kind="vllm") as runner:
        configure(runner, mcpServers={"clock": raw_entry(tmp_path, "clock", tools=CLOCK)})
        done = await runner.run("-p", "what time is it?", "--yes", "-o", "json")

    told = runner.server.chats[0]["messages"][0]["content"]
    assert "clock__get_time(timezone, [format]): Get the time in a zone" in told
    assert [(call["name"], call["args"]) for call in json.loads(done.out)["toolCalls"]] == [
        ("clock__get_time", {"timezone": "Europe/Vienna"})
    ]
    assert "Europe/Vienna" in runner.server.chats[1]["messages"][-1]["content"]


@pytest.mark.usefixtures("blocks")
async def test_a_model_that_writes_blocks_finds_a_hidden_tool_and_uses_it(tmp_path: Path) -> None:
    script = [
        "```call find_tool\nquery: thing 57\n```\n",
        "```call use_tool\nname: big__thing_57\nid: a7\n```\n",
        "Done.",
    ]
    async with running(tmp_path, script, window=4096, kind="vllm") as runner:
        configure(runner, mcpServers={"big": raw_entry(tmp_path, "big", tools=MANY)})
        done = await runner.run("-p", "do thing 57 to a7", "--yes", "-o", "json")

    told = runner.server.chats[0]["messages"][0]["content"]
    assert "find_tool(query)" in told
    assert "use_tool(name, arguments)" in told
    made = [(call["name"], call["args"], call["status"]) for call in json.loads(done.out)["toolCalls"]]
    assert made == [("find_tool", {"query": "thing 57"}, "ok"), ("big__thing_57", {"id": "a7"}, "ok")]


@pytest.mark.parametrize("bears", [1, 5])
async def test_a_model_that_bears_few_tools_still_finds_those_of_a_server(tmp_path: Path, bears: int) -> None:
    script = [Answer(calls=[("ls", {})]), "Hi.", "Hi."]
    async with running(tmp_path, script, window=16384, kind="vllm") as runner:
        configure(runner, mcpServers={"big": raw_entry(tmp_path, "big", tools=MANY)})
        await runner.run("-p", "hi")
        learn(runner.home, maxTools=bears)
        await runner.run("-p", "hi")

    names = set(shown_tools(runner.server.chats[2]))
    assert {"find_tool", "use_tool"} <= names
    assert len(names) <= bears + 2


def learn(home: Path, **facts: Any) -> None:
    file = home / "model-facts.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({key: {**kept, **facts} for key, kept in known.items()}), encoding="utf-8")


LIST_READABLE = """\
import pathlib, sys
home, report = pathlib.Path.home(), pathlib.Path(sys.argv[1] + ".seen")
found = (path for path in home.rglob("*") if path.is_file() and not path.is_relative_to(pathlib.Path.cwd()))
report.write_text("\\n".join(sorted(str(path.relative_to(home)) for path in found if path.read_text() == "secret")))
"""


async def test_the_users_own_hooks_and_servers_see_what_they_name_and_those_of_a_workspace_nothing(
    tmp_path: Path,
) -> None:
    home = tmp_path / "me"
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret")
    async with running(home, ["hi"]) as runner:
        for folder in ("servers/one", ".config", "dev", runner.workspace):
            (home / folder / "probe.py").write_text(LIST_READABLE)
        (runner.workspace / "link").symlink_to(home / "dev/linked")
        their_hook, their_server = "probe.py their-hook ~/.aws/credentials", "probe.py their-server ${HOME}/.ssh/id_rsa"
        own_server = f"{home}/servers/one/probe.py own-server {home}/.config/gh/hosts.yml"
        own_hooks = [
            "~/servers/one/probe.py own-folder ~/.aws/credentials",
            f"{home}/.config/probe.py shared-folder",
            "~/dev/probe.py folder-of-projects ~/servers/one",
            f"probe.py through-a-link ./link/key {runner.workspace}/link/key",
        ]
        (runner.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": run_python(their_server)}}))
        write_settings(runner.workspace / ".ollm", "after-turn", [their_hook])
        write_settings(runner.home, "before-turn", own_hooks, mcpServers={"own": run_python(own_server)})
        for line in ("trust", "mcp test own", "mcp test theirs", "-p hi"):
            await runner.run(*line.split(), HOME=str(home))
        seen = {name: (runner.workspace / f"{name}.seen").read_text().split() for name in SEEN}

    assert seen == SEEN


SECRETS = (
    *(".ssh/id_rsa", ".ssh/config", ".aws/credentials", ".aws/config", ".config/gh/hosts.yml", ".config/gh/config.yml"),
    *(".config/token", "dev/other/.env", "dev/linked/key", "servers/one/data"),
)
SEEN = {
    "own-server": [".config/gh/hosts.yml", "servers/one/data"],
    "own-folder": [".aws/credentials", "servers/one/data"],
    "shared-folder": [],
    "folder-of-projects": ["servers/one/data"],
    "through-a-link": [],
    "their-hook": [],
    "their-server": [],
}


def run_python(words: str) -> dict[str, Any]:
    return {"command": "/usr/bin/python3", "args": words.split()}


def write_settings(folder: Path, event: str, hooks: list[str], **more: Any) -> None:
    folder.mkdir()
    document = {"hooks": {event: [f"/usr/bin/python3 {hook}" for hook in hooks]}, **more}
    (folder / "config.yaml").write_text(json.dumps(document))


INSTALLER = """import os, sys, time
from pathlib import Path
cache = Path(os.environ["npm_config_cache"])
if (cache / "half").exists():
    sys.exit("node:internal/modules/esm:1\\n    at resolve\\nError [ERR_MODULE_NOT_FOUND]: half an install")
if not (cache / "whole").exists():
    cache.mkdir(parents=True, exist_ok=True)
    for step in range(int(sys.argv[1])):
        (cache / "half").write_bytes(bytes(300_000 * (step + 1)))
        time.sleep(0.5)
    (cache / "half").rename(cache / "whole")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


async def test_a_first_install_is_not_cut_off_and_a_failed_one_is_removed(tmp_path: Path) -> None:
    (tmp_path / "npx.py").write_text(INSTALLER)
    async with running(tmp_path, []) as runner:

        def set_server(steps: int) -> None:
            words = [str(tmp_path / "npx.py"), str(steps), SCRIPT, "good", str(tmp_path)]
            server = {"command": sys.executable, "args": words, "startTimeout": 3}
            configure(runner, mcpServers={"good": server}, sandbox={"readable": [str(tmp_path)]})

        set_server(14)
        stopped = await runner.start("mcp", "test", "good")
        assert "Installing the MCP server good" in (await stopped.stderr.readline()).decode()
        stopped.kill()
        await stopped.wait()
        again = await runner.run("mcp", "test", "good")

    assert again.code == 0, again.out
    assert "Installing the MCP server good" in again.err
