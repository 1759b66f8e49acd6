"""Tasks, as a person meets them: through the command, with a scripted server."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from ollm.services.token_counting import TokenCounter
from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_O, ENTER, ESCAPE, at_terminal
from tests.cli.test_mcp import configure, of
from tests.servers.answers import Answer

TASK = Answer(calls=[("task", {"prompt": "Where is pay?", "files": ["cart.py"]})])


def plant(runner: Runner) -> None:
    (runner.workspace / "cart.py").write_text("def pay(): pass\n")


def by_origin(runner: Runner, origin: str) -> list[dict[str, Any]]:
    return [session for session in runner.sessions() if session["metadata"]["origin"] == origin]


async def test_only_the_report_comes_back_and_the_work_is_a_session_of_its_own(tmp_path: Path) -> None:
    script = [TASK, Answer(calls=[("read_file", {"path": "cart.py"})]), "pay is at cart.py:1.", "It is in cart.py."]
    async with running(tmp_path, script) as runner:
        plant(runner)

        done = await runner.run("-p", "where is pay?", "-o", "json")

        answer = json.loads(done.out)
        assert (done.code, answer["text"]) == (0, "It is in cart.py.")
        assert answer["usage"] == {"promptTokens": 80, "completionTokens": 20, "reusedTokens": 0}, "all four requests"
        (parent,), (child,) = by_origin(runner, "one-shot"), by_origin(runner, "task")
        assert child["metadata"]["parent"] == {"sessionId": parent["sessionId"], "callId": "c1"}
        assert "parent" not in parent["metadata"]
        assert [call["name"] for call in parent["toolCalls"]] == ["task"]
        assert [call["name"] for call in child["toolCalls"]] == ["read_file"]
        chats = runner.server.chats
        assert chats[3]["messages"][-1]["content"] == "pay is at cart.py:1.\n[It looked at cart.py.]"
        assert chats[3]["messages"][: len(chats[0]["messages"])] == chats[0]["messages"], "the prefix stands"
        assert "def pay" not in json.dumps(chats[3]["messages"])
        assert "where is pay?" not in json.dumps(chats[1]["messages"]), "it sees nothing of the parent"


async def test_a_task_reads_only_and_begins_no_other(tmp_path: Path) -> None:
    script = [
        TASK,
        Answer(calls=[("write_file", {"path": "x", "content": "y"})]),
        Answer(calls=[("task", {"prompt": "again"})]),
        Answer(calls=[("shell", {"command": "touch y"})]),
        "Nothing.",
        "Nothing.",
    ]
    async with running(tmp_path, script) as runner:
        plant(runner)

        assert (await runner.run("-p", "hello", "--yes")).code == 0

        (child,) = by_origin(runner, "task")
        assert [(call["name"], call["error"]["type"]) for call in child["toolCalls"]] == [
            ("write_file", "Denied"),
            ("task", "UnknownTool"),
            ("shell", "Denied"),
        ]
        assert sorted(path.name for path in runner.workspace.iterdir()) == [".ollm", "cart.py"]


async def test_a_task_is_not_listed_counts_for_no_limit_and_goes_with_its_parent(tmp_path: Path) -> None:
    async with running(tmp_path, [TASK, "Found.", "Done.", "Hello."]) as runner:
        plant(runner)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("sessions: {maxSessions: 2}\n")
        await runner.run("-p", "first")
        await runner.run("-p", "second")

        listed = json.loads((await runner.run("sessions", "list", "--json")).out)
        everything = json.loads((await runner.run("sessions", "list", "--all", "--json")).out)

        assert len(runner.sessions()) == 3, "two, and the task"
        assert sorted(line["title"] for line in listed) == ["first", "second"]
        assert "↳ Where is pay?" in (await runner.run("sessions", "list", "--all")).out
        assert sorted(line["origin"] for line in everything) == ["one-shot", "one-shot", "task"]
        assert (await runner.run("sessions", "search", "larger job", "--json")).out.strip() == "[]"
        assert len(json.loads((await runner.run("sessions", "search", "larger job", "--all", "--json")).out)) == 1
        parent = next(line["sessionId"] for line in listed if line["title"] == "first")
        assert (await runner.run("sessions", "delete", parent, "--yes")).code == 0
        assert [session["metadata"]["title"] for session in runner.sessions()] == ["second"]


async def test_a_task_follows_its_parent_into_the_trash_and_back(tmp_path: Path) -> None:
    async with running(tmp_path, [TASK, "Found.", "Done.", "Hello."]) as runner:
        plant(runner)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("sessions: {maxSessions: 1}\n")
        await runner.run("-p", "first")
        (parent,) = by_origin(runner, "one-shot")
        await runner.run("-p", "second")
        assert [session["metadata"]["title"] for session in runner.sessions()] == ["second"]

        assert (await runner.run("sessions", "restore", parent["sessionId"])).code == 0

        assert len(by_origin(runner, "task")) == 1


async def test_the_steps_of_a_task_are_limited_and_it_reports_what_it_has(tmp_path: Path) -> None:
    reads = [Answer(calls=[("ls", {"path": "."})]), Answer(calls=[("read_file", {"path": "cart.py"})])]
    async with running(tmp_path, [TASK, *reads, "So far: cart.py:1.", "Done."]) as runner:
        plant(runner)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("tools: {task: {maxSteps: 2}}\n")

        assert (await runner.run("-p", "hello")).code == 0

        said = runner.server.chats[-1]["messages"][-1]["content"]
        assert said.startswith("So far: cart.py:1.\n[It looked at cart.py. The task ended early: ")
        assert "Write your report now" in runner.server.chats[3]["messages"][-1]["content"]


async def test_a_report_keeps_to_its_tokens(tmp_path: Path) -> None:
    async with running(tmp_path, [TASK, " ".join(f"w{number}" for number in range(3000)), "Done."]) as runner:
        plant(runner)

        await runner.run("-p", "hello", OLLM_CONTEXT_WINDOW="32768")

        said = runner.server.chats[-1]["messages"][-1]["content"]
        assert said.endswith("\n[…]")
        assert 700 < TokenCounter().count_text(said) <= 810
        assert "outline" in [tool["function"]["name"] for tool in runner.server.chats[0]["tools"]]


async def test_a_task_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path, [TASK, Answer(text="late", delay=60), "Done without it."]) as runner:
        plant(runner)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("tools: {task: {maxSeconds: 2}}\n")

        done = await runner.run("-p", "hello", "-o", "json")

        (call,) = json.loads(done.out)["toolCalls"]
        assert call["result"]["llmContent"] == "Error Timeout: The task was stopped after 2 seconds."
        assert json.loads(done.out)["text"] == "Done without it."


async def wait_until_asked(runner: Runner, count: int) -> None:
    async with asyncio.timeout(60):
        while len(runner.server.chats) < count:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_a_task_ends_with_its_parent_which_can_be_resumed(tmp_path: Path, how: signal.Signals) -> None:
    async with running(tmp_path, [TASK, Answer(text="late", delay=60), "Going on."]) as runner:
        plant(runner)
        process = await runner.start("-p", "hello")
        await wait_until_asked(runner, 2)
        process.send_signal(how)
        async with asyncio.timeout(30):
            await process.wait()

        done = await runner.run("-p", "go on", "--continue", "-o", "json")

        answer = json.loads(done.out)
        assert (done.code, answer["text"]) == (0, "Going on.")
        (parent,) = by_origin(runner, "one-shot")
        assert answer["sessionId"] == parent["sessionId"], "the task is not what is continued"
        expected = "cancelled" if how == signal.SIGINT else "interrupted"
        assert [call["status"] for call in parent["toolCalls"]] == [expected]
        assert "Interrupted: Interrupted" not in json.dumps(runner.server.chats[-1])
        assert "lease" not in done.err


def define_agent(runner: Runner, text: str) -> None:
    plant(runner)
    (runner.workspace / ".ollm" / "agents").mkdir(parents=True)
    (runner.workspace / ".ollm" / "agents" / "reviewer.md").write_text(text)


REVIEWER = "---\ndescription: Reviews code.\ntools: read_file, ls\n---\nYou review. Be strict.\n"


async def test_an_agent_has_its_instructions_and_its_tools(tmp_path: Path) -> None:
    script = [
        Answer(calls=[("task", {"prompt": "Look at cart.py", "agent": "reviewer"})]),
        Answer(calls=[("grep", {"pattern": "pay"})]),
        "Fine.",
        "Done.",
    ]
    async with running(tmp_path, script) as runner:
        define_agent(runner, REVIEWER)
        assert (await runner.run("trust")).code == 0

        await runner.run("-p", "review it")

        asked = runner.server.chats[1]
        assert asked["messages"][-1]["content"].startswith("You review. Be strict.\n\nLook at cart.py\n\n")
        assert [tool["function"]["name"] for tool in asked["tools"]] == ["ls", "read_file"]
        (child,) = by_origin(runner, "task")
        assert [call["error"]["type"] for call in child["toolCalls"]] == ["UnknownTool"]


async def test_a_mention_runs_an_agent_before_the_model_is_asked(tmp_path: Path) -> None:
    async with running(tmp_path, ["cart.py:1 is bad.", "So it is."]) as runner:
        define_agent(runner, REVIEWER)
        assert (await runner.run("trust")).code == 0

        done = await runner.run("-p", "@agent-reviewer is it fine?")

        assert done.out == "So it is.\n"
        assert "Task for reviewer: reviewer is it fine?" in done.err
        assert "is it fine?" in runner.server.chats[0]["messages"][-1]["content"]
        told = runner.server.chats[1]["messages"][-1]["content"]
        assert "@agent-reviewer is it fine?" in told
        assert "[Report of agent reviewer:]\ncart.py:1 is bad." in told
        (parent,) = by_origin(runner, "one-shot")
        (child,) = by_origin(runner, "task")
        assert child["metadata"]["parent"] == {"sessionId": parent["sessionId"], "callId": None}


async def test_an_agent_of_an_untrusted_workspace_is_not_used(tmp_path: Path) -> None:
    async with running(tmp_path, ["I do not know."]) as runner:
        define_agent(runner, REVIEWER)

        done = await runner.run("-p", "@agent-reviewer is it fine?")

        assert "There is no agent named reviewer; none is defined in .ollm/agents." in done.err
        assert done.out == "I do not know.\n"
        assert "Be strict" not in json.dumps(runner.server.chats)


async def test_at_most_three_agents_of_a_message_are_asked(tmp_path: Path) -> None:
    async with running(tmp_path, ["I do not know."]) as runner:
        done = await runner.run("-p", "@agent-a (@agent-B x@agent-z @agent-c @agent-a @agent-d go")

        assert done.out == "I do not know.\n"
        for name in "abc":
            assert done.err.count(f"There is no agent named {name};") == 1
        assert "@agent-d was not asked: a message has at most 3 agents." in done.err
        assert "agent named z" not in done.err


async def test_an_agent_that_writes_asks_as_its_parent_would(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "made.txt", "content": "x"})])
    call = Answer(calls=[("task", {"prompt": "Write it", "agent": "reviewer"})])
    async with running(tmp_path, [call, write, "Not allowed.", "No.", call, write, "Written.", "Yes."]) as runner:
        define_agent(runner, "---\nmode: code\n---\nYou write.\n")
        assert (await runner.run("trust")).code == 0

        await runner.run("-p", "write")
        assert not (runner.workspace / "made.txt").exists()
        await runner.run("-p", "write", "--allow", "write_file")
        assert (runner.workspace / "made.txt").read_text() == "x"


async def test_tasks_need_a_conversation(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        done = await runner.run("tools", "run", "task", "--args", '{"prompt": "x"}')

        assert done.code == 1
        assert "A task belongs to a conversation" in done.err


async def test_a_model_is_told_which_agents_there_are(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Hello."]) as runner:
        define_agent(runner, REVIEWER)
        (runner.workspace / ".ollm" / "agents" / "bad.md").write_text("---\nmode: wild\n---\nx")
        assert (await runner.run("trust")).code == 0

        await runner.run("-p", "hello", OLLM_CONTEXT_WINDOW="32768")
        await runner.run("-p", "hello", OLLM_CONTEXT_WINDOW="8192")

        for chat in runner.server.chats:
            told = {tool["function"]["name"]: tool["function"] for tool in chat["tools"]}["task"]
            assert told["description"].endswith("Agents: reviewer (Reviews code).")
            assert "agent" in told["parameters"]["properties"]


async def test_an_agent_with_unknown_tools_is_told_and_not_run(tmp_path: Path) -> None:
    call = Answer(calls=[("task", {"prompt": "Look", "agent": "Reviewer"})])
    async with running(tmp_path, ["I go on.", call, "I go on."]) as runner:
        define_agent(runner, "---\ntools: Read, Grep\n---\nYou review.\n")
        assert (await runner.run("trust")).code == 0

        mentioned = await runner.run("-p", "@agent-Reviewer look")
        await runner.run("-p", "look")

        assert "Agent reviewer names the tool Read, which is unknown; " in mentioned.err
        assert "names the tool Read" in runner.server.chats[-1]["messages"][-1]["content"]
        assert by_origin(runner, "task") == []


async def test_what_an_agent_changes_belongs_to_the_turn_of_its_parent(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "cart.py", "content": "def pay(:\n", "overwrite": True})])
    async with running(tmp_path, [write, "Written.", "Done."]) as runner:
        define_agent(runner, "---\nmode: code\n---\nYou write.\n")
        assert (await runner.run("trust")).code == 0
        await runner.run("-p", "@agent-reviewer write", "--allow", "write_file")
        assert (runner.workspace / "cart.py").read_text() == "def pay(:\n"
        said = runner.server.chats[1]["messages"][-1]["content"]
        assert "cart.py no longer parses: line 1" in said, "a model that calls by itself is told, too"
        (parent,) = by_origin(runner, "one-shot")

        done = await runner.run("sessions", "rewind", parent["sessionId"], "--to", "1", "--files")

        assert (done.code, (runner.workspace / "cart.py").read_text()) == (0, "def pay(): pass\n")


async def test_a_running_task_is_opened_with_a_key(tmp_path: Path) -> None:
    reads = [Answer(calls=[("ls", {"path": "."})]), Answer(calls=[("read_file", {"path": "cart.py"})])]
    script = [TASK, *reads, Answer(text="Found at cart.py:1.", delay=60)]
    async with running(tmp_path, script) as runner:
        plant(runner)
        async with at_terminal(runner, "chat", size=(90, 30)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("where is pay?" + ENTER)
            await terminal.wait_for("Task: Where is pay?", "│ Read cart.py · Ctrl-O shows all")
            assert "│ List" not in terminal.screen()
            terminal.type(CTRL_O)
            await terminal.wait_for("│ List", "│ Read cart.py", gone="Ctrl-O shows all")
            terminal.type(ESCAPE)
            await terminal.wait_for("stopped")


async def test_a_task_has_the_tools_of_servers_that_a_rule_allows(tmp_path: Path) -> None:
    calls = [("good__add", {"a": 2, "b": 3}), ("good__escape", {})]
    async with running(tmp_path, [TASK, Answer(calls=calls), "The sum is 5.", "Done."]) as runner:
        plant(runner)
        configure(runner, mcpServers={"good": of("good")}, policy={"rules": [{"tool": "good__add", "action": "allow"}]})

        assert (await runner.run("-p", "hello", "--yes")).out == "Done.\n"

        asked, answered = runner.server.chats[1], runner.server.chats[2]
        foreign = [name for tool in asked["tools"] if "__" in (name := tool["function"]["name"])]
        assert foreign == ["good__add"], "a task only reads, and nobody knows what the others do"
        assert answered["messages"][-2]["content"] == "the sum is 5"
        assert "Denied" in answered["messages"][-1]["content"]
