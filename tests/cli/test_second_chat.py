"""Two chats in one project, each on a terminal of its own."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import running, texts
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.sizes import SOAK


async def test_the_second_chat_opens_beside_the_first_and_both_go_on(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(at_terminal(runner, "first question"))
            await first.wait_for("One.")
            second = await stack.enter_async_context(at_terminal(runner))
            await second.wait_for("This workspace is in use by another ollm (process", "[b] open beside it")
            second.type("b")
            await second.wait_for("scripted @")
            assert "Resume a chat" not in second.text(), "the newest session is the one that is open"
            second.type("second question" + ENTER)
            await second.wait_for("Two.")
            first.type("third question" + ENTER)
            await first.wait_for("Three.")
            for terminal in (first, second):
                terminal.type(CTRL_D)
                assert await terminal.ended() == 0

    kept = sorted([text for role, text in texts(session) if role == "user"] for session in runner.sessions())
    assert kept == [["first question", "third question"], ["second question"]]


async def test_the_second_chat_leaves_the_first_alone_or_takes_over(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner, at_terminal(runner, "first question") as first:
        await first.wait_for("One.")
        async with at_terminal(runner, "--new") as second:
            await second.wait_for("[q] quit")
            second.type("q")
            assert await second.ended() == 0
        assert first.child.isalive()
        async with at_terminal(runner, "second question", size=(40, 20), COLUMNS="") as second:
            await second.wait_for("[t] take over,\nwhich closes it there", "(process")
            second.type("t")
            assert await first.ended() == 0
            assert "took over this workspace" in first.text()
            await second.wait_for("Two.")


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_beside_a_chat_the_newest_session_that_is_not_open_is_continued(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        async with at_terminal(runner, "about cats") as terminal:
            await terminal.wait_for("One.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "about dogs") as first:
            await first.wait_for("Two.")
            async with at_terminal(runner, "-c", "--beside") as second:
                await second.wait_for("› about cats", "Resumed")


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_many_chats_open_without_a_question_where_that_is_set(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner:
        ollm("config", "set", "workspace.sessions", "many", home=runner.home)
        async with at_terminal(runner, "first question") as first, at_terminal(runner, "second question") as second:
            await first.wait_for("first question", "scripted @")
            await second.wait_for("second question", "scripted @")
            assert "in use" not in first.text() + second.text()


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_the_daemon_is_named_and_lets_go_when_nobody_is_attached(tmp_path: Path) -> None:
    async with running(tmp_path, ["From the daemon.", "Here."]) as runner:
        try:
            async with at_terminal(runner, "chat", "--daemon", "--new") as attached:
                await attached.wait_for("scripted @")
                attached.type("hi" + ENTER)
                await attached.wait_for("From the daemon.")
                async with at_terminal(runner, "--new") as other:
                    await other.wait_for("Asking the daemon for the workspace")
                    await other.wait_for("This workspace is in use by the ollm daemon (process", "[q] quit")
                    other.type("q")
                    assert await other.ended() == 0
                attached.type(CTRL_D)
                assert await attached.ended() == 0
            async with at_terminal(runner, "hello there") as other:
                await other.wait_for("Here.")
                assert "in use" not in other.text()
        finally:
            ollm("daemon", "stop", home=runner.home)
