"""What real MCP servers said, replayed through the command in the usual run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.running import running
from tests.extensions.raw_servers import configure
from tests.integration.mcp_cases import BY_NAME, CASES, McpCase, check_cases
from tests.integration.recordings import RECORDED
from tests.servers.answers import Answer

REPLAY = str(Path(__file__).parents[1] / "servers" / "recorded_mcp.py")


def test_every_server_is_recorded_with_version_and_date() -> None:
    for name, case in BY_NAME.items():
        recording = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
        assert recording["server"] == case.package
        assert recording["version"]
        assert recording["date"]


async def test_a_model_calls_all_recorded_servers_in_one_turn(tmp_path: Path) -> None:
    def make_entry(case: McpCase, workspace: Path) -> dict[str, Any]:
        return {"command": sys.executable, "args": [REPLAY, str(RECORDED / f"{case.name}.json"), str(workspace)]}

    await check_cases(tmp_path, CASES, make_entry)


async def test_tools_of_recorded_servers_that_do_not_fit_are_found_by_words(tmp_path: Path) -> None:
    wanted = {
        "resize the browser window": "playwright__browser_resize",
        "move or rename a file": "filesystem__move_file",
        "commit the changes": "git__git_commit",
    }
    find = Answer(calls=[("find_tool", {"query": query}) for query in wanted])
    use = Answer(calls=[("use_tool", {"name": "everything__get-sum", "arguments": {"a": 19, "b": 23}})])
    async with running(tmp_path, [find, use, "Done."], kind="vllm", window=8192) as runner:
        names = ("everything", "playwright", "filesystem", "git")
        recordings = {name: [REPLAY, str(RECORDED / f"{name}.json"), str(runner.workspace)] for name in names}
        servers = {name: {"command": sys.executable, "args": args} for name, args in recordings.items()}
        configure(runner, mcpServers=servers, provider={"contextWindow": 8192})
        await runner.run("-p", "go", "--yes")

    for name, result in zip(wanted.values(), runner.server.chats[1]["messages"][-3:], strict=True):
        assert f"{name}: " in result["content"], result
        assert "omitted" not in result["content"], result
    assert "42" in runner.server.chats[2]["messages"][-1]["content"]
