"""What a task may do: never more than its parent, asked where its parent is asked."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from unittest.mock import sentinel

from ollm.app import open_conversation
from ollm.app.conversation import ConversationScope
from ollm.app.tasks import UNSUITED_TOOLS, TaskOrigin, TaskToolbox, _cut_report
from ollm.app.workspace import WorkspaceScope
from ollm.domain.events import ToolFinished, ToolOutput, TurnFinished
from ollm.domain.session import Agent
from ollm.runtime.base import ConversationOptions
from tests.app.places import AppPlace
from tests.app.test_conversation import options, say, use
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

TASK = Answer(calls=[("task", {"prompt": "Look around."})])


async def test_what_a_task_does_is_shown_as_it_happens(place: AppPlace) -> None:
    (place.workspace / "a.py").write_text("x = 1\n")
    script = [TASK, Answer(calls=[("read_file", {"path": "a.py"})]), "a.py:1 sets x.", "Done."]
    async with ScriptedServer(script) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation, conversation.turn("go") as events:
            seen = [event async for event in events if isinstance(event, ToolOutput | ToolFinished | TurnFinished)]

    assert [type(event).__name__ for event in seen] == ["ToolOutput", "ToolFinished", "TurnFinished"]
    assert isinstance(seen[0], ToolOutput)
    assert (seen[0].call_id, seen[0].text) == ("c1", "Read a.py\n")
    assert isinstance(seen[2], TurnFinished)
    assert seen[2].usage.prompt_tokens == 80


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


def test_a_report_is_cut_with_a_word_that_it_was() -> None:
    assert _cut_report("a b", 5, len) == "a b"
    assert _cut_report("a b c d e f", 5, len) == "a b c […]"
    assert _cut_report("", 5, len) == ""


def make(place: AppPlace, stack: AsyncExitStack, agent: Agent | None, *, approval: str = "ask") -> TaskToolbox:
    process = place.process()
    given = ConversationOptions(workspace=place.workspace, flags={"policy": {"approval": approval}})
    parent = ConversationScope(WorkspaceScope(process, place.workspace), given, stack).toolbox
    parent.policy.approval = approval  # type: ignore[assignment]
    mode = agent.mode if agent else "plan"
    origin = TaskOrigin(toolbox=parent, model=sentinel.model, agent=agent)
    child = ConversationOptions(workspace=place.workspace, one_shot=True, mode=mode)
    toolbox = ConversationScope(WorkspaceScope(process, place.workspace), child, stack, task=origin).toolbox
    assert isinstance(toolbox, TaskToolbox)
    assert toolbox.policy.grants is parent.policy.grants
    assert toolbox.sandbox is parent.sandbox
    assert toolbox.edits is parent.edits
    return toolbox


async def test_without_an_agent_it_reads_only(place: AppPlace) -> None:
    async with AsyncExitStack() as stack:
        toolbox = make(place, stack, None, approval="yolo")

        assert toolbox.policy.approval == "read-only"
        names = {spec.name for spec in toolbox.registry.list()}
        assert names.isdisjoint(UNSUITED_TOOLS)
        assert "read_file" in names


async def test_an_agent_that_writes_has_the_approval_of_its_parent_at_most(place: AppPlace) -> None:
    agent = Agent(name="a", description="", instructions="", mode="code", tools=("read_file", "edit_file", "task"))
    async with AsyncExitStack() as stack:
        toolbox = make(place, stack, agent, approval="accept-edits")
        assert toolbox.policy.approval == "accept-edits"
        assert [spec.name for spec in toolbox.registry.list()] == ["edit_file", "read_file"]
        assert make(place, stack, agent, approval="read-only").policy.approval == "read-only"
