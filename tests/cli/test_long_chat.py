"""A chat that passes several compressions in a 4K window and goes on, through the command.

In every run with a scripted server; in `make soak` with the embedded model and with a real llama.cpp server. What it came
to is printed (`pytest -s`); `docs/performance.md` has the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.cli.command import SCRIPT
from tests.cli.forked import finish, run_aside
from tests.covers import covers
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer
from tests.servers.passing import PassingServer
from tests.sizes import SOAK, size

pytestmark = pytest.mark.slow
WINDOW = 4096
COMPRESSIONS = size(1, 3)
MOST_TURNS = 40
LONGEST = 120  # tokens of an answer: a tiny model on a server of its own would go on to the end of the window
PATIENCE = size(60, 1800)  # seconds a turn may take: real models on a busy machine are slow
RULES = "policy: {rules: [{tool: '*', action: deny}, {tool: recall, action: allow}]}\n"


def note(number: int) -> str:
    """About three hundred tokens of a user's, with facts in them."""
    lines = [
        f"part {row} of module_{number} lives in src/area_{number}/part{row}.py and takes {number * 1000 + row} ms."
        for row in range(7)
    ]
    return f"Note {number}. {' '.join(lines)} Tell me in a few sentences what note {number} says."


class Chat:
    """One session in one workspace, talked to turn by turn; `variables` name the model."""

    def __init__(self, root: Path, variables: dict[str, str]) -> None:
        self.home, self.workspace = root / "home", root / "project"
        self.home.mkdir(exist_ok=True)
        self.workspace.mkdir()
        (self.home / "config.yaml").write_text(RULES, encoding="utf-8")
        self._variables = {**variables, "OLLM_HOME": str(self.home), "OLLM_CONTEXT_WINDOW": str(WINDOW)}
        self.said: list[str] = []
        self.heard = ""

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self._variables}

    async def ollm(self, *arguments: str) -> str:
        code, out, err = await run_aside(finish, arguments, self.workspace, self.environment, None, PATIENCE)
        assert code == 0, (out + err).decode()
        self.heard += err.decode()
        return out.decode()

    async def say(self, text: str) -> None:
        """One turn in a process of its own, the newest session taken up again."""
        self.said.append(text)
        again = ("--continue",) if len(self.said) > 1 else ()
        self.heard += await self.ollm("-p", text, *again, "-o", "stream-json")

    async def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.ollm("sessions", "view", "--json"))
        return found


class AtTerminal(Chat):
    """The same, typed at a plain terminal into one running chat, so that the model stays loaded."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        child = pexpect.spawn(
            SCRIPT,
            ["chat"],
            cwd=str(self.workspace),
            env={**self.environment, "TERM": "dumb"},
            encoding="utf-8",
            codec_errors="replace",
            echo=False,
            timeout=PATIENCE,
            dimensions=(50, 4000),
        )
        self._child = child
        try:
            await self._answer()
            yield
            child.sendline("/exit")
            child.expect(pexpect.EOF)
        finally:
            child.close(force=True)

    async def say(self, text: str) -> None:
        self.said.append(text)
        await self.type(text)

    async def type(self, text: str) -> str:
        self._child.sendline(text)
        return await self._answer()

    async def _answer(self) -> str:
        await asyncio.to_thread(self._child.expect, r"(?:^|\n)> $")
        self.heard += str(self._child.before)
        return str(self._child.before)


def reply(request: Request) -> Answer:
    """What stands in for a model: a summary where one is asked for, else a few sentences."""
    asked = request.body["messages"]
    used = sum(len(message["content"] or "") for message in asked) // 4
    assert used + 400 < WINDOW
    if "<record>" in asked[-1]["content"]:
        return Answer(text="Goal:\n- read notes\nOpen points:\n- none that matter to anybody", prompt_tokens=used)
    return Answer(text=" ".join(f"Part {n} of {used} has a file." for n in range(50)), prompt_tokens=used)


async def talk(chat: Chat) -> dict[str, Any]:
    """Until it was compressed often enough, and one turn more; the session as the command shows it."""
    begin = time.monotonic()
    document: dict[str, Any] = {"metadata": {"compressionCount": 0}}
    while document["metadata"]["compressionCount"] < COMPRESSIONS:
        assert len(chat.said) < MOST_TURNS, chat.heard
        await chat.say(note(len(chat.said) + 1))
        document = await chat.document()
    await chat.say("Thank you. Go on.")
    document = await chat.document()
    history = document["metadata"]["compressionHistory"]
    print(
        f"\n{len(chat.said)} turns, {time.monotonic() - begin:.0f} s; compressions, tokens before and after, and how:"
    )
    for one in history:
        made = one["checkpoint"]
        how = "folding" if made is None else "a digest" if made["engineWritten"] else "a summary of the model's"
        print(f"  {one['originalTokenCount']} → {one['compressedTokenCount']} by {how}")
    return document


async def assert_nothing_was_lost(chat: Chat, document: dict[str, Any]) -> None:
    messages, history = document["messages"], document["metadata"]["compressionHistory"]
    texts = [("".join(part.get("text", "") for part in m["parts"]), m["role"]) for m in messages]
    assert [text for text, role in texts if role == "user"] == chat.said
    assert [message["id"] for message in messages] == list(range(1, len(messages) + 1))
    assert [role for _, role in texts][-1] == "assistant"
    assert document["metadata"]["compressionCount"] == len(history) >= COMPRESSIONS
    assert all(one["compressedTokenCount"] < one["originalTokenCount"] <= WINDOW for one in history)
    assert "prompt-truncated" not in chat.heard
    assert "Compacting to fit" not in chat.heard
    snapshots = json.loads(await chat.ollm("snapshots", "list", "--json"))
    assert sum(one["trigger"] in ("compression", "threshold") for one in snapshots) >= COMPRESSIONS
    shown = json.loads(await chat.ollm("context", "show", "--json"))
    assert sum(part["tokens"] for part in shown["parts"]) <= shown["limit"] < WINDOW == shown["window"]


def folded(document: dict[str, Any]) -> int:
    """A message that no longer stands in the context."""
    return int(document["metadata"]["compressionHistory"][0]["messageIds"][0])


def text_of(document: dict[str, Any], number: int) -> str:
    return "".join(part.get("text", "") for part in document["messages"][number - 1]["parts"])


@asynccontextmanager
async def scripted() -> AsyncIterator[dict[str, str]]:
    async with ScriptedServer(reply, kind="llama.cpp", window=WINDOW) as server:
        yield {"OLLM_PROVIDER": "openai", "OLLM_BASE_URL": server.base_url, "OLLM_MODEL": "scripted"}


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, str]]:
    """A scripted server; in `make soak` a real llama.cpp server."""
    if not SOAK:
        async with scripted() as variables:
            yield variables
        return
    async with PassingServer(request.getfixturevalue("llama_server"), LONGEST) as passing:
        yield {"OLLM_PROVIDER": "openai", "OLLM_BASE_URL": passing.base_url, "OLLM_MODEL": "smollm2"}


@pytest.fixture
async def loaded(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[dict[str, str]]:
    """A scripted server; in `make soak` the embedded model."""
    async with scripted() as variables:
        if SOAK:
            (tmp_path / "home").mkdir()
            (tmp_path / "home" / "models").symlink_to(request.getfixturevalue("model_home") / "models")
        yield {"OLLM_PROVIDER": "embedded"} if SOAK else variables


@covers("H22", "H39", "S3.1", "S3.8", "D754")
async def test_turn_by_turn_in_a_process_each(tmp_path: Path, server: dict[str, str]) -> None:
    chat = Chat(tmp_path, server)
    document = await talk(chat)

    await assert_nothing_was_lost(chat, document)
    number = folded(document)
    assert text_of(document, number)[:40] in await chat.ollm("-p", f"/expand {number}", "--continue")


@covers("H22", "H39", "S3.1", "S3.8", "D754")
async def test_typed_at_a_terminal(tmp_path: Path, loaded: dict[str, str]) -> None:
    chat = AtTerminal(tmp_path, loaded)
    async with chat.open():
        document = await talk(chat)
        await assert_nothing_was_lost(chat, document)
        number = folded(document)
        shown = await chat.type(f"/expand {number}")

    assert text_of(document, number)[:40] in shown
