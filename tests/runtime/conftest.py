"""What the tests of conversations share."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import open_conversation
from ollm.runtime.base import ConversationOptions
from tests.runtime.talking import Talk, Talking
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


@pytest.fixture
def talking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talking:
    @asynccontextmanager
    async def opened(
        script: Sequence[Answer | str] = (), served: dict[str, Any] | None = None, **more: Any
    ) -> AsyncIterator[Talk]:
        home, workspace = tmp_path / "home", tmp_path / "project"
        workspace.mkdir(exist_ok=True)
        async with ScriptedServer(script, models=("scripted", "other"), **(served or {})) as server:
            for name, value in (("HOME", home), ("BASE_URL", server.base_url), ("PROVIDER", "openai")):
                monkeypatch.setenv(f"OLLM_{name}", str(value))
            monkeypatch.setenv("OLLM_MODEL", "scripted")
            async with open_conversation(
                ConversationOptions(workspace=workspace, interactive=True, **more)
            ) as conversation:
                yield Talk(conversation, server, home, workspace)

    return opened


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model is told first changes with its words alone: here it is short and stays."""
    monkeypatch.setattr("ollm.runtime.prompt.prefix.build_instructions", lambda window, mode: f"Help. Mode {mode}.")
