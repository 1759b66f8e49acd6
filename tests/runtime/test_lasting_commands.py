"""What commands change outlives a crash, also before the first turn."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.cli.command import SCRIPT
from tests.servers.openai import ScriptedServer

CODE = """
import asyncio, os, sys
from pathlib import Path
from ollm import ConversationOptions, open_conversation

async def main():
    async with open_conversation(ConversationOptions(workspace=Path.cwd())) as conversation:
        await conversation.command("goal", "set Ship the parser")
        await conversation.command("context", "add rule Never touch main")
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_goals_and_entries_set_before_the_first_turn_outlive_a_kill_and_are_told_once(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    async with ScriptedServer(["Yes.", "Again."]) as server:
        environment = {
            **os.environ,
            "OLLM_HOME": str(tmp_path / "home"),
            "OLLM_PROVIDER": "openai",
            "OLLM_BASE_URL": server.base_url,
            "OLLM_MODEL": "scripted",
        }

        async def run(*command: str) -> int | None:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=workspace, env=environment, stdout=asyncio.subprocess.DEVNULL
            )
            return await process.wait()

        assert await run(sys.executable, "-c", CODE) == -9
        assert await run(SCRIPT, "-p", "hello", "--continue") == 0
        assert await run(SCRIPT, "-p", "and on", "--continue") == 0

    for chat in server.chats:
        told = json.dumps(chat["messages"])
        assert told.count("Ship the parser") == 1
        assert told.count("Never touch main") == 1
