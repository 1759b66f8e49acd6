"""The MCP servers people install most, what a model calls of them, and what must come back."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.running import running
from tests.extensions.raw_servers import configure, shown_tools
from tests.servers.answers import Answer

WINDOW = 131_072
WORKSPACE_MARK = "{workspace}"


@dataclass(frozen=True)
class RemoteCall:
    """A call of a tool: its status, and an expression for what the model is told of it."""

    tool: str
    arguments: dict[str, Any]
    expected: str
    status: str = "ok"


@dataclass(frozen=True)
class McpCase:
    """A server: where its package is, how it is started, how many tools it has at least, and calls."""

    name: str
    registry: str
    package: str
    program: str
    tools: int
    calls: tuple[RemoteCall, ...]
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


THOUGHT = {"thought": "First look, then leap.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
NOON = {"source_timezone": "Europe/Vienna", "time": "12:00", "target_timezone": "Asia/Tokyo"}
ADA = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}]}
CASES = (
    McpCase(
        name="everything",
        registry="npm",
        package="@modelcontextprotocol/server-everything",
        program="mcp-server-everything",
        tools=13,
        calls=(
            RemoteCall("echo", {"message": "hello there"}, "hello there"),
            RemoteCall("get-sum", {"a": 19, "b": 23}, r"\b42\b"),
            RemoteCall("get-structured-content", {"location": "Chicago"}, "temperature"),
            RemoteCall("get-resource-links", {"count": 2}, r"demo://resource"),
            RemoteCall("get-sum", {"a": "many", "b": 1}, "(?i)invalid|expected", "failed"),
            RemoteCall("trigger-long-running-operation", {"duration": 1, "steps": 2}, "(?i)completed"),
            RemoteCall("read_resource", {"uri": "demo://resource/dynamic/text/1"}, "(?i)resource 1"),
        ),
    ),
    McpCase(
        name="filesystem",
        registry="npm",
        package="@modelcontextprotocol/server-filesystem",
        program="mcp-server-filesystem",
        args=(WORKSPACE_MARK,),
        tools=10,
        calls=(
            RemoteCall("list_directory", {"path": WORKSPACE_MARK}, "notes.txt"),
            RemoteCall("read_text_file", {"path": f"{WORKSPACE_MARK}/notes.txt"}, "milk"),
            RemoteCall("read_text_file", {"path": f"{WORKSPACE_MARK}/no.txt"}, "ENOENT", "failed"),
        ),
    ),
    McpCase(
        name="memory",
        registry="npm",
        package="@modelcontextprotocol/server-memory",
        program="mcp-server-memory",
        env={"MEMORY_FILE_PATH": f"{WORKSPACE_MARK}/memory.jsonl"},
        tools=9,
        calls=(
            RemoteCall("create_entities", ADA, "Ada"),
            RemoteCall("search_nodes", {"query": "Ada"}, "first program"),
        ),
    ),
    McpCase(
        name="sequential-thinking",
        registry="npm",
        package="@modelcontextprotocol/server-sequential-thinking",
        program="mcp-server-sequential-thinking",
        tools=1,
        calls=(RemoteCall("sequentialthinking", THOUGHT, "thoughtHistoryLength"),),
    ),
    McpCase(
        name="playwright",
        registry="npm",
        package="@playwright/mcp",
        program="playwright-mcp",
        args=("--headless", "--isolated"),
        tools=20,
        calls=(RemoteCall("browser_navigate", {"url": "about:blank"}, "(?i)about:blank|browser|chrom", ""),),
    ),
    McpCase(
        name="git",
        registry="pypi",
        package="mcp-server-git",
        program="mcp-server-git",
        tools=10,
        calls=(
            RemoteCall("git_status", {"repo_path": WORKSPACE_MARK}, "(?i)on branch"),
            RemoteCall("git_log", {"repo_path": WORKSPACE_MARK}, "first commit"),
            RemoteCall("git_show", {"repo_path": WORKSPACE_MARK, "revision": "nowhere"}, "nowhere", "failed"),
        ),
    ),
    McpCase(
        name="fetch",
        registry="pypi",
        package="mcp-server-fetch",
        program="mcp-server-fetch",
        tools=1,
        calls=(RemoteCall("fetch", {"url": "http://127.0.0.1:9/"}, "(?i)127.0.0.1|failed|refused", "failed"),),
    ),
    McpCase(
        name="time",
        registry="pypi",
        package="mcp-server-time",
        program="mcp-server-time",
        tools=2,
        calls=(
            RemoteCall("convert_time", NOON, "Asia/Tokyo"),
            RemoteCall("get_current_time", {"timezone": "Nowhere/Land"}, "(?i)timezone", "failed"),
        ),
    ),
)
BY_NAME = {case.name: case for case in CASES}


def fill_in(value: Any, workspace: Path) -> Any:
    """The same, with the folder of this run in it."""
    return json.loads(json.dumps(value).replace(WORKSPACE_MARK, json.dumps(str(workspace))[1:-1]))


def prepare_workspace(workspace: Path) -> None:
    """A small project under git."""
    (workspace / "notes.txt").write_text("milk\n", encoding="utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "notes.txt"], ["commit", "-q", "-m", "first commit"]):
        subprocess.run([*git, *command], cwd=workspace, check=True, capture_output=True)


async def check_cases(
    directory: Path, cases: Sequence[McpCase], make_entry: Callable[[McpCase, Path], dict[str, Any]]
) -> None:
    """A turn in which the model makes every call of every server; it was shown the tools with the first request."""
    asked = [(case, call) for case in cases for call in case.calls]
    async with running(directory, [], kind="vllm", window=WINDOW) as runner:
        prepare_workspace(runner.workspace)
        configure(runner, mcpServers={case.name: make_entry(case, runner.workspace) for case in cases})
        calls = [(f"{case.name}__{call.tool}", fill_in(call.arguments, runner.workspace)) for case, call in asked]
        runner.server.script = [Answer(calls=calls), "Done."]
        done = await runner.run("-p", "call them", "--yes", "-o", "json")
    said = json.loads(done.out)
    assert (done.code, said["text"]) == (0, "Done."), done.err
    assert [(made["name"], made["args"]) for made in said["toolCalls"]] == calls
    results = runner.server.chats[1]["messages"][-len(calls) :]
    for (_, call), made, result in zip(asked, said["toolCalls"], results, strict=True):
        assert re.search(call.expected, result["content"]), (call, result)
        assert made["status"] == call.status or not call.status, result
        assert made["status"] == "ok" or result["content"].startswith("Error McpError"), result
    shown = list(shown_tools(runner.server.chats[0]))
    for case in cases:
        assert len([name for name in shown if name.startswith(f"{case.name}__")]) >= case.tools, (case.name, shown)
