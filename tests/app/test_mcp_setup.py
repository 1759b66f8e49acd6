"""MCP servers, models, agents and tasks of the application."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.app.conversation import open_conversation
from ollm.app.mcp_setup import read_configured_servers
from ollm.domain.errors import ToolFailure
from ollm.domain.events import TurnFinished
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.extensions.mcp.gate import ServerGate
from ollm.extensions.mcp.settings import McpServer
from ollm.policy.grants import GrantBook
from ollm.services.agents import (
    MAX_AGENT_BYTES,
    MAX_LISTED_CHARS,
    complete_agent,
    describe_agents,
    list_agents,
    load_agent,
    read_agent,
)
from tests.app.places import AppPlace
from tests.app.test_process import options, say, use
from tests.cli.running import Runner, running
from tests.covers import covers
from tests.servers.answers import PROBE, Answer, Request
from tests.servers.openai import ScriptedServer

KEY = "abcdefgh12345678"


def write_project_file(place: AppPlace, **servers: object) -> None:
    (place.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_the_users_own_entry_wins_over_the_projects(place: AppPlace) -> None:
    place.configure(mcpServers={"one": {"command": "mine"}})
    write_project_file(place, one={"command": "theirs"}, two={"command": "theirs"})
    place.trust()
    entries, notes = place.process().mcp_entries

    assert {name: entry["command"] for name, entry in entries.items()} == {"one": "mine", "two": "theirs"}
    assert notes == []


def test_the_users_own_server_may_name_any_variable_and_leave_the_box(place: AppPlace) -> None:
    place.configure(
        mcpServers={
            "mine": {
                "command": "${TOOL}",
                "args": ["--key", "${API_KEY}"],
                "env": {"KEY": "${API_KEY}"},
                "sandbox": "off",
            },
            "far": {"url": "http://${TOOL}/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
        }
    )
    (mine, far), problems = read_configured_servers(place.process(TOOL="run", API_KEY=KEY))

    assert problems == ()
    assert (mine.command, mine.args, mine.env, mine.boxed) == ("run", ("--key", KEY), {"KEY": KEY}, False)
    assert (far.url, far.headers) == ("http://run/mcp", {"Authorization": f"Bearer {KEY}"})


def test_one_that_a_workspace_brings_gets_what_tools_get_and_stays_in_the_box(place: AppPlace) -> None:
    write_project_file(place, theirs={"command": "run", "args": ["${API_KEY}", "${LANG}"], "sandbox": "off"})
    place.trust()
    (theirs,), _ = read_configured_servers(place.process(API_KEY=KEY, LANG="C"))

    assert theirs.args == ("${API_KEY}", "C")
    assert theirs.boxed


SERVER = McpServer(name="docs", command="serve", args=("--port", "1"), env={"TOKEN": "secret-value"})


class Person:
    def __init__(self, answer: ConfirmationAnswer) -> None:
        self.answer = answer
        self.asked: list[ConfirmationDetails] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(details)
        await asyncio.sleep(0)
        return self.answer


async def test_one_question_for_any_number_of_requests_and_no_secret_in_it() -> None:
    person = Person(ConfirmationAnswer(approved=True))
    gate = ServerGate({"docs": {}}, person.ask, GrantBook())
    await asyncio.gather(*(gate.approve(SERVER) for _ in range(3)))

    (asked,) = person.asked
    assert asked.description == "Start the MCP server docs: serve --port 1"
    assert "secret-value" not in str(asked)


async def test_always_is_for_exactly_this_server(tmp_path: Path) -> None:
    person = Person(ConfirmationAnswer(approved=True, scope="everywhere"))
    for server in (SERVER, SERVER, msgspec.structs.replace(SERVER, env={"TOKEN": "other"})):
        await ServerGate({}, person.ask, GrantBook(tmp_path / "grants.yaml")).approve(server)

    assert len(person.asked) == 2
    assert "secret-value" not in (tmp_path / "grants.yaml").read_text()


Say = Callable[[str, dict[str, Any]], Answer]


def native(name: str, arguments: dict[str, Any]) -> Answer:
    return Answer(calls=[(name, arguments)], prompt_tokens=900)


def fenced(name: str, arguments: dict[str, Any]) -> Answer:
    return Answer(text=f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```", prompt_tokens=900)


def model(say: Say, *, bears: int = 100) -> Callable[[Request], Answer]:
    """A model that calls as `say` does, and errs when it sees too many tools."""

    def answer(request: Request) -> Answer:
        messages, tools = request.body["messages"], request.body.get("tools", ())
        last = messages[-1]["content"]
        if probed := PROBE.search(last):
            return say(probed[1], {probed[2]: probed[3]})
        if "alpha.txt" in last or "gamma.txt" in last:
            path = "alpha.txt" if "alpha" in last else "beta/gamma.txt"
            return say("read_file" if len(tools) <= bears else "shell", {"path": path})
        return Answer(text="one two three four", prompt_tokens=9000)

    return answer


async def probed(runner: Runner) -> dict[str, Any]:
    done = await runner.run("models", "probe", "--json")
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (model(native), {"callForm": "native", "resultForm": "tool", "maxTools": None}),
        (model(fenced), {"callForm": "text", "writtenForm": "fence", "resultForm": "user", "maxTools": None}),
        (model(native, bears=3), {"callForm": "native", "maxTools": 3}),
        (lambda request: Answer(text="I cannot."), {"callForm": "none", "maxTools": None}),
    ],
    ids=["native", "text", "few tools", "no calls"],
)
@covers("T10.1")
async def test_the_card_says_what_the_model_can_do(
    tmp_path: Path, script: Callable[[Request], Answer], expected: dict[str, Any]
) -> None:
    async with running(tmp_path, script) as runner:
        card = await probed(runner)

    assert {key: card["facts"][key] for key in expected} == expected
    assert card["facts"]["probed"].endswith("Z")
    names = ["speed", "calls", "tools", "window", "forms"]
    assert [trial["name"] for trial in card["trials"] if trial["name"] in names] == names


def answer_in_blocks(request: Request) -> Answer:
    """A model that writes its calls badly and blocks well."""
    last = request.body["messages"][-1]["content"]
    if "Change LIMIT" in last and not request.body.get("tools"):
        return Answer(text='```write conf.py\nDEBUG = False\nNAME = "x"\nLIMIT = 20\n```', prompt_tokens=900)
    if "Delete the file" in last:
        return Answer(text="```run\nrm old.txt\n```", prompt_tokens=900)
    return Answer(text="I would look for it.", prompt_tokens=900)


async def test_the_forms_are_compared_on_tiny_tasks_and_the_better_one_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, answer_in_blocks) as runner:
        card = await probed(runner)
        done = await runner.run("doctor")

    (told,) = [trial["told"] for trial in card["trials"] if trial["name"] == "forms"]
    assert "blocks 2 of 3" in told
    assert card["facts"]["callForm"] == "blocks"
    assert "in blocks" in done.out


async def test_what_was_found_is_kept_shown_by_the_doctor_and_used(tmp_path: Path) -> None:
    async with running(tmp_path, model(fenced, bears=3)) as runner:
        await probed(runner)
        doctor = await runner.run("doctor")
        await runner.run("-p", "hello")

    assert "written as text" in doctor.out
    assert "results are sent as user messages" in doctor.out
    assert "tok/s" in doctor.out
    shown = [tool["function"]["name"] for tool in runner.server.chats[-1]["tools"]]
    assert shown == ["edit_file", "read_file", "write_file"]


async def test_the_card_is_a_table_for_people(tmp_path: Path) -> None:
    async with running(tmp_path, model(native)) as runner:
        done = await runner.run("models", "probe", "scripted")

    lines = done.out.splitlines()
    assert lines[0].startswith("scripted, probed 2")
    assert lines[1].split() == ["TRIAL", "FOUND", "SECONDS"]
    assert any(line.startswith("calls") and "native" in line for line in lines)
    assert "calls: native" in done.err


def test_the_front_matter_and_the_body() -> None:
    agent = read_agent(
        "a", "---\ndescription: Does it.\ntools: [read_file, grep]\nmodel: qwen\nmode: debug\n---\nBe strict.\n"
    )

    assert (agent.description, agent.tools, agent.model, agent.mode) == (
        "Does it.",
        ("read_file", "grep"),
        "qwen",
        "debug",
    )
    assert agent.instructions == "Be strict."
    assert (read_agent("a", "Just do.").mode, read_agent("a", "Just do.").tools) == ("plan", ())
    assert read_agent("a", "---\ntools:\n  - read_file\n  - ls\n---\nx").tools == ("read_file", "ls")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntools: []\n---\nx", "tools names none"),
        ("---\ntools:\n---\nx", "tools names none"),
        ("---\nmode: wild\n---\nx", "mode is assistant, plan, code, debug, not wild"),
        ("---\nmode: code\nYou write.\n", "front matter has no end"),
        ("x" * (MAX_AGENT_BYTES + 1), "more than"),
    ],
)
def test_an_agent_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.md").write_text(text)

    with pytest.raises(ToolFailure, match=said):
        load_agent((tmp_path,), "a")


def test_the_first_directory_counts_and_links_and_odd_names_do_not(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.md").write_text(folder)
    (tmp_path / "two" / "other.md").write_text("x")
    (tmp_path / "two" / "Odd Name.md").write_text("x")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "two" / "link.md").symlink_to(tmp_path / "secret")
    directories = (tmp_path / "one", tmp_path / "two", tmp_path / "none")

    assert [agent.name for agent in list_agents(directories, ())] == ["other", "same"]
    assert load_agent(directories, "same").instructions == "one"
    with pytest.raises(ToolFailure, match="did you mean other"):
        load_agent(directories, "othr")
    with pytest.raises(ToolFailure, match="available: other, same"):
        load_agent(directories, "../secret")


def test_a_mention_is_completed_once_something_is_typed(tmp_path: Path) -> None:
    for name in ("review", "release"):
        (tmp_path / f"{name}.md").write_text("x")

    assert complete_agent((tmp_path,), "Agent-rev") == ["agent-review"]
    assert complete_agent((tmp_path,), "ag") == ["agent-release", "agent-review"]
    assert complete_agent((tmp_path,), "") == []


def test_what_a_model_can_choose_from(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("---\nmode: wild\n---\nx")
    (tmp_path / "plain.md").write_text("Just do.")
    (tmp_path / "reviewer.md").write_text("---\ndescription: Reviews code.\n---\nx")
    assert describe_agents((tmp_path,)) == "plain; reviewer (Reviews code)"
    for number in range(40):
        (tmp_path / f"z{number:02}.md").write_text(f"---\ndescription: {'long ' * 30}\n---\nx")
    assert describe_agents((tmp_path,)).endswith("; …")
    assert len(describe_agents((tmp_path,))) <= MAX_LISTED_CHARS + 3
    assert describe_agents((tmp_path / "none",)) == ""


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
