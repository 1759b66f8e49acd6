"""Coming back: the picker, switching, a killed chat, a chat that makes way, and the daemon behind it."""

import signal
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import Runner, running, texts
from tests.cli.terminal import CTRL_A, CTRL_D, CTRL_X, ENTER, TAB, Terminal, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer
from tests.sizes import SOAK


@covers("W7", "W9", "W136", "W137", "W138")
async def test_sessions_are_offered_switched_archived_and_deleted(tmp_path: Path) -> None:
    async with running(tmp_path, ["About cats.", "About dogs.", "Dogs again."]) as runner:
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("scripted @")
            assert "Resume a chat" not in terminal.text(), "the first time there is nothing to ask"
            terminal.type("cats" + ENTER)
            await terminal.wait_for("About cats.", "   cats")
            terminal.type("/new" + ENTER)
            await terminal.wait_for("New session", "scripted @", gone="   cats")
            terminal.type("dogs" + ENTER)
            await terminal.wait_for("About dogs.")
            await switches(terminal)
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "-r") as terminal:
            await picks(terminal, runner)
    assert [said for _, said in texts(runner.sessions()[0])] == ["dogs", "About dogs.", "more", "Dogs again."]


async def test_a_chosen_model_stays_chosen_in_new_sessions_and_others_keep_their_own(tmp_path: Path) -> None:
    async with running(tmp_path, ["Zero.", "One.", "Two."], models=("scripted", "other")) as runner:
        await runner.run("-p", "before")
        before = runner.sessions()[0]["sessionId"]
        async with at_terminal(runner, "--new") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("/model other" + ENTER)
            await terminal.wait_for("other @")
            for question, answer in (("first", "One."), ("second", "Two.")):
                terminal.type("/clear" + ENTER)
                await terminal.wait_for("New session.", "▌ other", gone=f"› {question}")
                terminal.type(question + ENTER)
                await terminal.wait_for(answer)
            terminal.type(f"/resume {before[:8]}" + ENTER)
            await terminal.wait_for("Resumed")
            assert await terminal.wait_until(lambda: "scripted @" in terminal.screen())
    assert [chat["model"] for chat in runner.server.chats] == ["scripted", "other", "other"]


async def test_words_behind_clear_are_for_the_new_session_and_ctrl_d_ends_a_turn_under_way(tmp_path: Path) -> None:
    script = [Answer(text="One after another.", pace=0.2), "Two.", Answer(text="On and on", stall_after=2)]
    async with running(tmp_path, script) as runner, at_terminal(runner, "first words") as terminal:
        await terminal.wait_for("● One")
        terminal.type("/clear" + ENTER + "second" + ENTER)
        await terminal.wait_for("Two.", "   second")
        terminal.type("third" + ENTER)
        await terminal.wait_for("● On")
        terminal.type("fourth" + ENTER)
        await terminal.wait_for("queued: fourth")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
    said = [[text for role, text in texts(session) if role == "user"] for session in runner.sessions()]
    assert sorted(said) == [["first words"], ["second", "third"]]


async def switches(terminal: Terminal) -> None:
    terminal.type("/sessions" + ENTER)
    await terminal.wait_for("Resume a chat", "2 msgs")
    terminal.type(ENTER)
    await terminal.wait_for("Resumed", "› cats", gone="Resume a chat")


async def picks(terminal: Terminal, runner: Runner) -> None:
    await terminal.wait_for("Resume a chat", " cats ", " dogs ", "About dogs.")
    terminal.type("dog")
    await terminal.wait_for(" dogs ", gone=" cats ")
    terminal.type(CTRL_A)
    await terminal.wait_for("No matching sessions.")
    terminal.type("\x7f\x7f\x7f" + TAB)
    await terminal.wait_for(" dogs ", "unarchive")
    terminal.type(CTRL_A)
    await terminal.wait_for("No matching sessions.")
    terminal.type(TAB)
    await terminal.wait_for(" cats ", " dogs ")
    terminal.type("cats" + CTRL_X)
    await terminal.wait_for("delete it permanently")
    terminal.type(CTRL_X)
    await terminal.wait_for("No matching sessions.")
    assert len(runner.sessions()) == 1
    terminal.type("\x7f" * 4)
    await terminal.wait_for(" dogs ")
    terminal.type(ENTER)
    await terminal.wait_for("› dogs", "About dogs.", "Resumed", "scripted @")
    terminal.type("more" + ENTER)
    await terminal.wait_for("Dogs again.")
    terminal.type(CTRL_D)
    await terminal.ended()


@covers("W141")
async def test_a_killed_chat_is_resumed_and_a_lost_server_comes_back(tmp_path: Path) -> None:
    script = [
        Answer(text="Half of an answer " * 40, pace=0.05),
        "Going on.",
        Answer(text="Lost in", reset_after=1),
        "Back.",
    ]
    async with running(tmp_path, script) as runner:
        async with at_terminal(runner, "chat", "--new") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("begin" + ENTER)
            await terminal.wait_for("Half of an")
            await terminal.settle(2.5)
            terminal.kill(signal.SIGKILL)
            assert await terminal.ended() == -signal.SIGKILL
        async with at_terminal(runner, "chat", "--continue") as terminal:
            await terminal.wait_for("› begin", "Half of an", "Resumed")
            terminal.type("and?" + ENTER)
            await terminal.wait_for("Going on.")
            terminal.type("once more" + ENTER)
            await terminal.wait_for("Lost", "disconnected", gone="· Esc stops")
            terminal.type("still there?" + ENTER)
            await terminal.wait_for("Back.")
            await makes_way(terminal, runner)
        assert "is taken" in terminal.text() or "took over this workspace" in terminal.text()


async def makes_way(terminal: Terminal, runner: Runner) -> None:
    """Another process takes the workspace with --force; then a SIGTERM ends that one properly."""
    async with at_terminal(runner, "chat", "--continue") as other:
        await other.wait_for("This workspace is in use by another ollm (process", "[t] take over")
        other.type("q" + ENTER)
        assert await other.ended() == 0
    async with at_terminal(runner, "chat", "--continue", "--force") as other:
        assert await terminal.ended() == 0
        await other.wait_for("› still there?", "Resumed")
        other.kill(signal.SIGTERM)
        assert await other.ended() == 143
        assert "ollm -r " in other.text()
    (session,) = runner.sessions()
    assert texts(session)[-1] == ("assistant", "Back.")


async def test_the_daemon_keeps_the_turn_when_the_terminal_leaves(tmp_path: Path) -> None:
    slow = Answer(text="Slowly it says this and then it is over.", pace=0.2)
    edit = Answer(calls=[("write_file", {"path": "b.txt", "content": "hello\n"})])
    async with running(tmp_path, ["From the daemon.", edit, "Written.", slow, "After all."]) as runner:
        try:
            async with at_terminal(runner, "chat", "--daemon") as terminal:
                await terminal.wait_for("scripted @")
                terminal.type("hi" + ENTER)
                await terminal.wait_for("From the daemon.")
                terminal.type("write it" + ENTER)
                await terminal.wait_for("b.txt", "[y] yes")
                terminal.type("y")
                await terminal.wait_for("Written.")
                terminal.type("/context" + ENTER)
                await terminal.wait_for("tokens used")
                terminal.type("slow" + ENTER)
                await terminal.wait_for("Slowly it")
                terminal.type(CTRL_D)
                assert await terminal.ended() == 0
                assert "--daemon" in terminal.text()
            async with at_terminal(runner, "chat", "--daemon") as terminal:
                await terminal.wait_for("Resume a chat", " hi ")
                terminal.type(ENTER)
                await terminal.wait_for("then it is over.", "› slow")
                terminal.type("and?" + ENTER)
                await terminal.wait_for("After all.")
                terminal.type(CTRL_D)
                await terminal.ended()
        finally:
            ollm("daemon", "stop", home=runner.home)
    assert (runner.workspace / "b.txt").read_text() == "hello\n"
    (session,) = runner.sessions()
    assert [said for role, said in texts(session) if role == "user"] == ["hi", "write it", "slow", "and?"]


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_an_idle_terminal_shows_what_another_one_says_in_the_same_session(tmp_path: Path) -> None:
    edit = Answer(calls=[("write_file", {"path": "b.txt", "content": "hello\n"})])
    async with running(tmp_path, ["Begun.", "Both hear this.", edit, "Written."]) as runner:
        try:
            async with at_terminal(runner, "chat", "--daemon") as first:
                await first.wait_for("scripted @")
                first.type("begin" + ENTER)
                await first.wait_for("Begun.")
                async with at_terminal(runner, "chat", "--daemon", "--continue") as second:
                    await second.wait_for("› begin", "scripted @")
                    second.type("hear me" + ENTER)
                    await first.wait_for("› hear me", "Both hear this.")
                    await second.wait_for("Both hear this.")
                    first.type("write it" + ENTER)
                    await second.wait_for("› write it", "[y] yes")
                    second.type("y")
                    await first.wait_for("Written.")
                    await second.wait_for("Written.")
                    second.type(CTRL_D)
                    await second.ended()
                first.type(CTRL_D)
                await first.ended()
        finally:
            ollm("daemon", "stop", home=runner.home)
    assert (runner.workspace / "b.txt").read_text() == "hello\n"


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_joining_a_running_turn_shows_it_once(tmp_path: Path) -> None:
    slow = Answer(text=" ".join(f"word{number}" for number in range(40)), pace=0.3)
    async with running(tmp_path, ["Begun.", slow]) as runner:
        try:
            async with at_terminal(runner, "chat", "--daemon") as first:
                await first.wait_for("scripted @")
                first.type("begin" + ENTER)
                await first.wait_for("Begun.")
                first.type("count slowly" + ENTER)
                await first.wait_for("word4")
                async with at_terminal(runner, "chat", "--daemon", "--continue") as second:
                    await second.wait_for("word39")
                    shown = second.text()
                    second.type(CTRL_D)
                    await second.ended()
                first.type(CTRL_D)
                await first.ended()
        finally:
            ollm("daemon", "stop", home=runner.home)
    assert shown.count("word0 ") == 1
    assert shown.count("word3 ") == 1
    assert shown.count("count slowly") == 1
    assert "waits until" not in shown, "nothing was asked for that has to wait"
    assert shown.count("Begun.") == 1
