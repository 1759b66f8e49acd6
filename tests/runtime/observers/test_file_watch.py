"""A conversation that looked for files watches them until it ends; one that did not, and a single prompt, do not."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from ollm.app import open_conversation
from ollm.runtime.conversation_options import ConversationOptions
from tests.covers import covers
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


def list_watches() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ollm watch")]


@covers("S6.7")
@pytest.mark.parametrize(("asked", "one_shot", "expected"), [(True, False, 1), (False, False, 0), (True, True, 0)])
async def test_the_tree_is_watched_once_a_tool_looked_for_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool, one_shot: bool, expected: int
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.py").write_text("x = 1\n", encoding="utf-8")
    looks = [Answer(calls=[("glob", {"pattern": "*.py"})])] if asked else []
    async with ScriptedServer([*looks, "done", "done"], models=("scripted",)) as server:
        for name, value in (("HOME", tmp_path / "home"), ("BASE_URL", server.base_url), ("PROVIDER", "openai")):
            monkeypatch.setenv(f"OLLM_{name}", str(value))
        options = ConversationOptions(workspace=workspace, one_shot=one_shot)
        async with open_conversation(options) as conversation:
            async with conversation.turn("Which files are there?") as events:
                async for _ in events:
                    pass
            deadline = time.monotonic() + (5 if expected else 0.3)
            while len(list_watches()) != expected or (not expected and time.monotonic() < deadline):
                assert time.monotonic() < deadline, list_watches()
                await asyncio.sleep(0.02)

    assert list_watches() == []
