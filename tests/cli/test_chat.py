"""The chat as a person sees it: the real program on a terminal, against a scripted server."""

import asyncio
import json
from pathlib import Path

from tests.cli.running import Runner, running, texts
from tests.cli.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, Terminal, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer

STORY = " ".join(f"word{number}" for number in range(60)) + "\n\nThe *end* of it."


def edit(target: str, replacement: str) -> Answer:
    edits = [{"target": target, "replacement": replacement}]
    return Answer(calls=[("edit_file", {"path": "a.txt", "edits": edits})])


@covers("T7.8", "T8.1", "T8.2", "T8.3", "T9.4", "T5.2")
async def test_an_answer_streams_and_questions_are_answered_each_way(tmp_path: Path) -> None:
    shell = Answer(calls=[("shell", {"command": "for i in 1 2 3; do echo line $i; done; touch made; sleep 60"})])
    script = [
        Answer(text=STORY, pace=0.06),
        edit("one", "two"),
        "As you wish.",
        edit("one", "two"),
        edit("two", "three"),
        "Both done.",
        shell,
        Answer(text="This goes on and on", stall_after=4),
        "Fine.",
        "Queued answer.",
    ]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("one\n")
        async with at_terminal(runner, "chat") as terminal:
            await streams_across_a_resize(terminal)
            await refuses_then_allows(terminal, runner)
            await stops_tool_and_answer(terminal, runner)
            await queues_while_it_works(terminal, runner)
            terminal.type(CTRL_D)
            code = await terminal.ended()

    (session,) = runner.sessions()
    assert code == 0
    assert terminal.text().endswith(f"Resume with: ollm -r {session['sessionId'][:8]}")
    assert terminal.paper.title_now == ""
    assert texts(session)[0] == ("user", "Tell a story")


async def streams_across_a_resize(terminal: Terminal) -> None:
    await terminal.wait_for("ollm asks before it changes a file", "\n›")
    terminal.type("Tell a story" + ENTER)
    await terminal.wait_for("word3")
    for columns, rows in ((60, 20), (100, 30)):
        terminal.resize(columns, rows)
        assert await terminal.wait_until(lambda: f"\n{'─' * columns}\n" in f"{terminal.screen()}\n")  # noqa: B023
    await terminal.wait_for("word59", "The end of it.", "   Tell a story", gone="· Esc stops")
    assert terminal.text().count("word59") == 1, "a finished block is printed once"
    assert terminal.paper.title_now.startswith("ollm · ")


async def refuses_then_allows(terminal: Terminal, runner: Runner) -> None:
    terminal.type("change it" + ENTER)
    await terminal.wait_for("? Edit a.txt", "1 - one", "1 + two", "[y] yes", gone="risk")
    assert terminal.paper.bells == 1
    terminal.type("n")
    await terminal.wait_for("reason:")
    terminal.type("leave that file" + ENTER)
    await terminal.wait_for("As you wish.", gone="[y] yes")
    assert "leave that file" in json.dumps(runner.server.chats[2]["messages"][-1])
    terminal.type("do it now" + ENTER)
    await terminal.wait_for("[y] yes", "[a] always …", gone="As you wish. x")
    terminal.type("s" + ENTER)
    await terminal.wait_for("Both done.")
    assert (runner.workspace / "a.txt").read_text() == "three\n", "the second edit was not asked about"
    assert terminal.text().count("? Edit a.txt") == 2


async def stops_tool_and_answer(terminal: Terminal, runner: Runner) -> None:
    terminal.type("run it" + ENTER)
    await terminal.wait_for("$ for i in 1 2 3", "[n] no")
    terminal.type("y")
    await terminal.wait_for("│ line 3")
    assert (runner.workspace / "made").exists()
    terminal.type(CTRL_C)
    await terminal.wait_for("The turn was cancelled", "stopped", gone="│ line 3")
    terminal.type("and now?" + ENTER)
    await terminal.wait_for("This goes on")
    terminal.type(ESCAPE)
    await asyncio.wait_for(runner.server.left.wait(), 20)
    await terminal.wait_for(gone="· Esc stops")


async def queues_while_it_works(terminal: Terminal, runner: Runner) -> None:
    block = "\n".join(f"pasted {number}" for number in range(5000))
    terminal.paste(block)
    await terminal.wait_for("[pasted 5,000 lines #1]")
    terminal.type(" what is it?" + ENTER)
    terminal.type("next one" + ENTER)
    await terminal.wait_for("Queued answer.")
    assert runner.server.chats[-2]["messages"][-1]["content"] != ""
    sent = [message["content"] for message in runner.server.chats[-1]["messages"] if message["role"] == "user"]
    assert sent[-1] == "next one"
    (session,) = runner.sessions()
    assert any(said == f"{block} what is it?" for _, said in texts(session))
