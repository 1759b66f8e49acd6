"""A client we did not write, acpx from npm: a change allowed and refused, a mode, the list of sessions.

It needs Node 22.13, which is fetched as the npm package `node`. Both are kept in `~/.cache/ollm-test-acpx`.
"""

import asyncio
import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acp.editor import EDIT, WAIT_SECONDS, variables
from tests.servers.openai import ScriptedServer
from tests.sizes import SOAK

CACHE = Path.home() / ".cache" / "ollm-test-acpx"
PACKAGES = ("acpx@0.19.1", "node@22.13.1")
FETCH_SECONDS = 60
NODE, ACPX = "node_modules/node/bin/node", "node_modules/acpx/dist/cli.js"


@pytest.fixture(scope="module")
def acpx() -> list[str]:
    """The command; the tests are skipped where it cannot be had."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (CACHE / "ready").exists():
            fetch()
    return [str(CACHE / NODE), str(CACHE / ACPX)]


def fetch() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("acpx needs npm to be fetched")
    command = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=8000", *PACKAGES]
    (CACHE / "package.json").write_text('{"private": true}')
    try:
        subprocess.run(command, cwd=CACHE, capture_output=True, check=True, timeout=FETCH_SECONDS)
        subprocess.run(
            [CACHE / NODE, CACHE / ACPX, "--version"], capture_output=True, check=True, timeout=FETCH_SECONDS
        )
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"acpx and its Node could not be fetched from npm: {error}")
    (CACHE / "ready").touch()


async def run(command: list[str], environment: dict[str, str], workspace: Path, *words: str) -> tuple[int, str]:
    agent = ["--agent", f"{sys.executable} -m ollm acp", "--cwd", str(workspace)]
    process = await asyncio.create_subprocess_exec(
        *command, *agent, *words, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(WAIT_SECONDS):
        out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.skipif(not SOAK, reason="fetches a client and its Node: make soak")
async def test_acpx_drives_a_conversation_and_allow_and_deny_are_both_right(acpx: list[str], tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    file = workspace / "a.txt"
    file.write_text("one\ntwo\n")
    async with ScriptedServer([EDIT, "Not done.", EDIT, "It is done."]) as server:
        environment = variables(tmp_path, server.base_url)
        _, refused = await run(acpx, environment, workspace, "--deny-all", "exec", "change it")
        assert file.read_text() == "one\ntwo\n"
        code, allowed = await run(
            acpx, environment, workspace, "--approve-all", "--format", "json", "exec", "change it"
        )
        assert file.read_text() == "one\nthree\n"
        _, listed = await run(acpx, environment, workspace, "sessions", "list")

    assert "Not done." in refused
    assert "declined" in refused
    assert code == 0
    lines = [json.loads(line) for line in allowed.splitlines()]
    updates = [line["params"]["update"]["sessionUpdate"] for line in lines if line.get("method") == "session/update"]
    assert {"tool_call", "tool_call_update", "agent_message_chunk", "usage_update"} <= set(updates)
    assert listed.count("change it") == 2
