"""A model per role on several servers: where each request goes, what happens without a server, what is shown."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import open_conversation
from ollm.domain.events import Compressed, Notice
from ollm.runtime import conversation as idle
from ollm.runtime.base import ConversationOptions
from ollm.runtime.conversation import LocalConversation
from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

TASK = Answer(calls=[("task", {"prompt": "Where is pay?"})])
LONG = "Staging listens on port 5433 and src/net/retry.py tries 3 times. " + "We talked about many other things. " * 60
MINUTES = "Goal:\n- keep the port 5433 of staging\nDecisions:\n- retry 3 times, see src/net/retry.py"


def configure(runner: Runner, **sections: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps(sections))


@asynccontextmanager
async def talking(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalConversation]:
    for name in ("OLLM_HOME", "OLLM_BASE_URL", "OLLM_PROVIDER", "OLLM_MODEL"):
        monkeypatch.setenv(name, runner.environment()[name])
    monkeypatch.setattr(idle, "QUIET_SECONDS", 0.0)
    async with open_conversation(ConversationOptions(workspace=runner.workspace, interactive=True)) as conversation:
        yield conversation


async def say(conversation: LocalConversation, text: str) -> list[Any]:
    async with conversation.turn(text) as events:
        return [event async for event in events]


def read_notices(events: list[Any]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice) and event.level == "warning"]


def answer_by_kind(request: Request) -> Answer:
    kinds = {
        "Write a title": "**Port of staging**",
        "You are the clerk": MINUTES,
        "Choose the mode": '{"mode": "debug"}',
    }
    order = str(request.body["messages"][0]["content"])
    text = next((text for begin, text in kinds.items() if order.startswith(begin)), "Port 5433. " + "I see. " * 60)
    return Answer(text=text, prompt_tokens=len(json.dumps(request.body)) // 4)


async def test_a_task_goes_to_its_server_with_its_own_key_and_settings(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [TASK, "Done."]) as runner,
        ScriptedServer(["It is in cart.py:1."], model="helper", kind="llama.cpp") as helper,
    ):
        role = {"baseUrl": helper.base_url, "model": "helper", "apiKeyEnv": "HELPER_ACCESS", "parallel": 1}
        configure(runner, roles={"tasks": role}, models={"helper": {"temperature": 0.1}}, provider={"apiKey": "main"})
        done = await runner.run("-p", "hello", HELPER_ACCESS="helper-key-11")
        environment = await runner.run("env", "check", "--json", HELPER_ACCESS="helper-key-11")

    assert done.code == 0, done.err
    assert (helper.chats[0]["model"], helper.chats[0]["temperature"]) == ("helper", 0.1)
    assert {request.headers.get("authorization") for request in helper.requests} == {"Bearer helper-key-11"}
    assert {request.headers.get("authorization") for request in runner.server.requests} == {"Bearer main"}
    assert "It is in cart.py:1." in json.dumps(runner.server.chats[-1]["messages"])
    assert list((runner.home / "run").glob("server-*")), "its server has a queue"
    assert "HELPER_ACCESS" in {removed["name"] for removed in json.loads(environment.out)["removed"]}


async def test_a_server_that_is_down_is_said_once_and_main_does_the_work(tmp_path: Path) -> None:
    async with ScriptedServer() as gone:
        pass
    async with running(tmp_path, [TASK, "In cart.py.", TASK, "In shop.py.", "Done."]) as runner:
        configure(runner, roles={"small": f"{gone.base_url}/v1/tiny"})
        done = await runner.run("-p", "hello")
        checked = await runner.run("doctor")

    assert done.code == 0, done.err
    assert f"small: No model server answers at {gone.base_url}" in checked.out
    assert done.err.count("roles.tasks:") == 1
    assert "Using scripted instead." in done.err
    assert len(runner.server.chats) == 5


async def test_main_does_the_task_of_a_server_that_answers_with_an_error(tmp_path: Path) -> None:
    failing = Answer(status=401, body={"error": {"message": "no key"}})
    async with (
        running(tmp_path, [TASK, "In cart.py.", "Done."]) as runner,
        ScriptedServer([failing] * 9, model="helper") as helper,
    ):
        configure(runner, roles={"tasks": {"baseUrl": helper.base_url, "model": "helper"}})
        done = await runner.run("-p", "hello")

    assert (done.code, done.out) == (0, "Done.\n"), done.err
    assert done.err.count("roles.tasks:") == 1
    assert "In cart.py." in json.dumps(runner.server.chats[-1]["messages"])


async def test_nothing_is_asked_of_a_role_before_it_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Hello."]) as runner, ScriptedServer(model="tiny") as small:
        await runner.run("-p", "hello")
        before = len(runner.server.requests)
        configure(runner, roles={"small": f"{small.base_url}/tiny"})
        await runner.run("-p", "hello")

    assert small.requests == []
    first, second = runner.server.chats
    assert first == second
    assert len(runner.server.requests) == 2 * before


async def test_a_title_is_written_after_the_turn_and_a_name_of_ones_own_stays(tmp_path: Path) -> None:
    async with running(tmp_path, ["Port 5433.", "Still."]) as runner, ScriptedServer(answer_by_kind) as small:
        configure(runner, roles={"small": f"{small.base_url}/scripted"})
        async with at_terminal(runner, "chat") as terminal:
            terminal.type("Which port does staging use?" + ENTER)
            await terminal.wait_for("Port 5433.")
            assert small.chats == []
            async with asyncio.timeout(60):
                while not any("of staging" in path.read_text() for path in (runner.home / "sessions").iterdir()):
                    await asyncio.sleep(0.1)
            terminal.type("/model" + ENTER)
            await terminal.wait_for(small.base_url)
            terminal.type("And production?" + ENTER)
            await terminal.wait_for("Still.", "Port of staging")
            terminal.type(CTRL_D)
            await terminal.ended()
        listed = json.loads((await runner.run("sessions", "list", "--json")).out)

    assert [line["title"] for line in listed] == ["Port of staging"]
    assert len(small.chats) == 1
    assert "Which port does staging use?" in small.chats[0]["messages"][1]["content"]


async def test_summaries_go_to_the_small_model_within_its_window_and_back_to_main_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        running(tmp_path, answer_by_kind, kind="llama.cpp", window=4096) as runner,
        ScriptedServer(answer_by_kind, model="tiny", kind="llama.cpp", window=2048) as small,
    ):
        configure(runner, roles={"small": f"{small.base_url}/tiny"}, compression={"idle": "off"})
        async with talking(runner, monkeypatch) as conversation:
            heard = [event for _ in range(6) for event in await say(conversation, LONG)]
            assert any(isinstance(event, Compressed) for event in heard)
            summaries = [body for body in small.chats if body["messages"][0]["content"].startswith("You are the clerk")]
            assert summaries
            assert all(len(json.dumps(body["messages"])) < 4 * 2048 for body in summaries)
            rows = (await conversation.command("model")).data["roles"]
            assert [(row["role"], row["model"]) for row in rows] == [
                ("main", "scripted"),
                ("small", "tiny"),
                ("summary", "tiny"),
                ("tasks", "tiny"),
            ]
            assert all(row["time"].endswith(" s") for row in rows)

            await small.__aexit__()
            later = [event for _ in range(6) for event in await say(conversation, LONG)]

    (said,) = [text for text in read_notices(later) if "roles." in text]
    assert said.startswith(f"roles.summary: No model server answers at {small.base_url}")
    assert said.endswith("Using scripted instead.")
    assert any(body["messages"][0]["content"].startswith("You are the clerk") for body in runner.server.chats)


async def test_the_role_of_summaries_compacts_after_the_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        running(tmp_path, answer_by_kind, kind="llama.cpp", window=4096) as runner,
        ScriptedServer(answer_by_kind, model="clerk") as clerk,
    ):
        configure(runner, roles={"summary": f"{clerk.base_url}/clerk"})
        async with talking(runner, monkeypatch) as conversation:
            async with asyncio.timeout(60):
                while not conversation.parts.prompt.get_active_context().folded:
                    await say(conversation, LONG)
                    await asyncio.sleep(0.5)
            asked = len(clerk.chats)
            heard = await say(conversation, LONG)
            assert asked
            assert any(isinstance(event, Compressed) for event in heard)
            assert not [body for body in runner.server.chats if not body.get("tools")], "main writes no summaries"


async def test_the_small_model_chooses_modes_unless_it_shares_the_main_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, answer_by_kind) as runner, ScriptedServer(answer_by_kind, model="tiny") as small:
        for url in (small.base_url, runner.server.base_url):
            configure(runner, roles={"small": f"{url}/tiny"}, modes={"autoSwitch": "on"})
            async with talking(runner, monkeypatch) as conversation:
                await say(conversation, "Er kommt nicht mehr hoch.")
                assert conversation.parts.prompt.mode == "debug"
    chosen = [body["model"] for server in (small, runner.server) for body in server.chats if not body.get("tools")]
    assert chosen == ["tiny", "scripted"]


async def test_roles_are_checked_shown_and_never_taken_from_a_workspace(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Hello."]) as runner:
        (runner.workspace / ".ollm").mkdir()
        (runner.workspace / ".ollm" / "config.yaml").write_text('{"roles": {"main": "http://127.0.0.1:9/evil"}}')
        await runner.run("trust")
        set_ = await runner.run("config", "set", "roles.small", "llamacpp/tiny")
        key = await runner.run("config", "set", "roles.tasks.apiKey", "s3cret-words")
        bad = await runner.run("config", "set", "roles.tasks.baseUrl", "gpu-box")
        shown = await runner.run("config", "show")
        refused = await runner.run("-p", "hi")
        configure(runner, roles={"main": {"baseUrl": runner.server.base_url, "model": "scripted"}, "small": "m"})
        main = await runner.run("-p", "hi", OLLM_BASE_URL="", OLLM_PROVIDER="", OLLM_MODEL="")

    assert (set_.code, key.code, bad.code) == (0, 0, 2)
    assert "expected a URL" in bad.err
    assert "small: llamacpp/tiny" in shown.out
    assert "s3cret" not in shown.out
    assert "roles.main: can only be set in your own config file" in refused.err
    assert (refused.code, main.code) == (0, 0), main.err
    assert [body["model"] for body in runner.server.chats] == ["scripted", "scripted"]
