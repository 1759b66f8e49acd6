"""What people do with MCP servers beside calling them, tried with real ones: tools that do not fit, resources, prompts,
rules, questions, and servers at an address that are started anew."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import ENTER, TAB, at_terminal
from tests.extensions.raw_servers import configure, shown_tools
from tests.integration import packages
from tests.integration.mcp_cases import BY_NAME, fill_in, prepare_workspace
from tests.servers.answers import Answer

DOCUMENT = "demo://resource/static/document/features.md"
START_SECONDS = 60
pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")


def make_entry(name: str, workspace: Path) -> dict[str, Any]:
    case = BY_NAME[name]
    install = packages.install_npm if case.registry == "npm" else packages.install_pypi
    try:
        program, _ = install(case.package, case.program)
    except packages.UnavailableError as error:
        pytest.skip(f"{case.package}: {error}")
    return {"command": str(program), "args": fill_in(list(case.args), workspace), "env": fill_in(case.env, workspace)}


def offer(runner: Runner, *names: str, window: int = 131_072, **settings: Any) -> None:
    prepare_workspace(runner.workspace)
    servers = {name: make_entry(name, runner.workspace) for name in names}
    configure(runner, mcpServers=servers, provider={"contextWindow": window}, **settings)


async def test_tools_that_do_not_fit_are_found_by_words_and_called(tmp_path: Path) -> None:
    wanted = {
        "resize the browser window": "playwright__browser_resize",
        "add two numbers and get the sum": "everything__get-sum",
        "move or rename a file": "filesystem__move_file",
    }
    calls = [
        ("use_tool", {"name": "everything__get-sum", "arguments": {"a": 19, "b": 23}}),
        ("use_tool", {"name": "filesystem__move_file", "arguments": {"source": "notes.txt", "destination": "n.txt"}}),
        ("use_tool", {"name": "everything__no-such-tool", "arguments": {}}),
    ]
    script = [Answer(calls=[("find_tool", {"query": query}) for query in wanted]), Answer(calls=calls), "Done."]
    async with running(tmp_path, script, kind="vllm", window=8192) as runner:
        offer(runner, "everything", "playwright", "filesystem", window=8192)
        done = await runner.run("-p", "go", "--yes", "-o", "json")
        listed = await runner.run("-p", "/mcp")

    shown, found = shown_tools(runner.server.chats[0]), runner.server.chats[1]["messages"][-3:]
    assert "playwright (" in shown["find_tool"]["description"]
    for name, result in zip(wanted.values(), found, strict=True):
        assert f"{name}: " in result["content"], result
        assert "omitted" not in result["content"]
    made = json.loads(done.out)["toolCalls"][3:]
    assert [(call["name"], call["status"]) for call in made] == [
        ("everything__get-sum", "ok"),
        ("filesystem__move_file", "ok"),
        ("everything__no-such-tool", "failed"),
    ], made
    assert (runner.workspace / "n.txt").exists()
    assert "more by find_tool" in listed.out


async def test_resources_and_prompts_go_into_messages(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", *["Fine."] * 4], kind="vllm", window=131_072) as runner:
        offer(runner, "everything")
        await runner.run("-p", "hi")
        await runner.run("-p", f"what is in @everything:{DOCUMENT}?")
        assert "Everything Server" in str(runner.server.chats[-1]["messages"][-1])
        await runner.run("-p", "/everything:args-prompt city=Paris")
        assert "weather in Paris" in str(runner.server.chats[-1]["messages"][-1])
        refused = await runner.run("-p", "/everything:args-prompt")
        assert (refused.code, len(runner.server.chats)) == (2, 3)
        assert "missing city" in refused.err
        async with at_terminal(runner, "chat", "--new") as terminal:
            await terminal.wait_for("›")
            terminal.type("/everything:args")
            await terminal.wait_for("/everything:args-prompt")
            terminal.type(f"{TAB} Rome{ENTER}")
            await terminal.wait_for("Fine.")
    assert "weather in Rome" in str(runner.server.chats[-1]["messages"])


async def test_rules_and_lists_choose_tools_and_plan_mode_runs_what_is_allowed(tmp_path: Path) -> None:
    script = [Answer(calls=[("everything__echo", {"message": "plan"}), ("everything__get-env", {})]), "Done."]
    rules = [{"tool": "everything__echo", "action": "allow"}, {"tool": "everything__get-env", "action": "deny"}]
    async with running(tmp_path, ["Hello.", *script], kind="vllm", window=131_072) as runner:
        offer(runner, "everything", policy={"rules": rules})
        settings = json.loads((runner.home / "config.yaml").read_text(encoding="utf-8"))
        settings["mcpServers"]["everything"] |= {"include": ["e*", "get-*"], "exclude": ["get-tiny-image"]}
        configure(runner, **settings)
        await runner.run("-p", "hi")
        done = await runner.run("-p", "plan it", "--mode", "plan", "-o", "json")

    shown = {name for name in shown_tools(runner.server.chats[0]) if name.startswith("everything__")}
    assert {"everything__echo", "everything__get-sum"} <= shown
    assert not shown & {"everything__get-env", "everything__get-tiny-image", "everything__toggle-simulated-logging"}
    allowed, denied = json.loads(done.out)["toolCalls"]
    assert (allowed["status"], denied["status"] == "ok") == ("ok", False)


@contextmanager
def start_everything(mode: str) -> Iterator[tuple[int, Callable[[], None]]]:
    """server-everything at an address: its port, and how it is started anew."""
    program, _ = packages.install_npm(BY_NAME["everything"].package, BY_NAME["everything"].program)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running_now: list[subprocess.Popen[bytes]] = []

    def restart() -> None:
        for each in running_now:
            each.kill()
            each.wait()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running_now.append(subprocess.Popen([str(program), mode], env={**os.environ, "PORT": str(port)}, **quiet))  # type: ignore[call-overload]
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.1)

    try:
        restart()
        yield port, restart
    finally:
        running_now[-1].kill()
        running_now[-1].wait()


@pytest.mark.parametrize(("mode", "path", "kind"), [("streamableHttp", "mcp", "http"), ("sse", "sse", "sse")])
async def test_a_server_at_an_address_may_be_started_anew_and_ask(
    tmp_path: Path, mode: str, path: str, kind: str
) -> None:
    make_entry("everything", tmp_path)
    with start_everything(mode) as (port, restart):
        async with running(tmp_path, [], kind="vllm", window=131_072) as runner:
            configure(runner, mcpServers={"far": {"type": kind, "url": f"http://127.0.0.1:{port}/{path}"}})
            asked = 0

            def answer(_request: Any) -> Answer:
                nonlocal asked
                asked += 1
                if asked == 1:
                    return Answer(calls=[("far__echo", {"message": "one"}), ("far__trigger-elicitation-request", {})])
                if asked == 2:
                    restart()
                    return Answer(calls=[("far__echo", {"message": "two"})])
                return Answer(text="Done.")

            runner.server.script = answer
            done = await runner.run("-p", "go", "--yes", "-o", "json")

    made = json.loads(done.out)["toolCalls"]
    assert [call["status"] for call in made] == ["ok", "ok", "ok"], made
    assert "declined" in str(made[1]["result"])
    assert "Please provide inputs" in done.err
    assert "Echo: two" in str(made[2]["result"])
