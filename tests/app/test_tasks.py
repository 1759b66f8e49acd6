"""What a task may do: never more than its parent, asked where its parent is asked."""

import asyncio
import json
import time

from ollm.app import open_conversation
from ollm.domain.events import TurnFinished
from tests.app.places import AppPlace
from tests.app.test_conversation import options, say, use
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

TASK = Answer(calls=[("task", {"prompt": "Look around."})])


async def test_cancelling_the_turn_ends_its_task_at_once(place: AppPlace) -> None:
    async with ScriptedServer([TASK, Answer(text="late", delay=120)]) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation:
            async with conversation.turn("go") as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        break
                    if len(server.chats) < 2:
                        async with asyncio.timeout(60):
                            while len(server.chats) < 2:
                                await asyncio.sleep(0.01)
                        begin = time.monotonic()
                        await conversation.cancel()
            assert time.monotonic() - begin < 30, "long before the server would have answered"
            calls = conversation.parts.session.load().tool_calls
            assert [(call.name, call.status) for call in calls] == [("task", "cancelled")]


async def test_twenty_files_are_explored_without_compacting_the_parent(place: AppPlace) -> None:
    for number in range(20):
        (place.workspace / f"part{number}.py").write_text(f"def part{number}():\n" + "    step = 'some words'\n" * 80)
    reads = [Answer(calls=[("read_file", {"path": f"part{number}.py"})]) for number in range(20)]
    script = ["Hello.", TASK, *reads, "All twenty set step, part0.py:2 first.", "They all set step."]
    async with ScriptedServer(script) as server:
        place.configure(
            provider={"type": "openai", "baseUrl": server.base_url, "model": "m", "contextWindow": 8192},
            tools={"task": {"maxSteps": 30}},
            compression={"strategy": "truncate"},
        )
        async with open_conversation(options(place)) as conversation:
            await say(conversation, "hello")
            before = conversation.parts.prompt.message_tokens
            await say(conversation, "what do all parts do?")
            grown = conversation.parts.prompt.message_tokens - before
            session = conversation.parts.session.load()

    assert session.metadata.compression_count == 0
    assert "All twenty set step" in json.dumps(server.chats[-1]["messages"])
    assert grown < 250, "the question, the call, its report and the answer"
