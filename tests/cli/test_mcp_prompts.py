"""Prompts of MCP servers as commands, and their resources in messages, in the chat and with -p."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.running import Runner, running
from tests.cli.terminal import ENTER, TAB, at_terminal
from tests.extensions.raw_servers import configure, raw_entry

PROMPTS = [
    {
        "name": "review",
        "description": "Review a change",
        "arguments": [{"name": "branch", "required": True}, {"name": "depth"}],
    }
]
RESOURCES = [{"uri": "notes://today", "name": "today"}, {"uri": "notes://tomorrow", "name": "tomorrow"}]


def offer(runner: Runner, directory: Path) -> None:
    desk = raw_entry(directory, "desk", tools=[], prompts=PROMPTS, resources=RESOURCES)
    configure(runner, mcpServers={"desk": desk})


def said(chats: list[dict[str, Any]]) -> str:
    return str(chats[-1]["messages"][-1]["content"])


SENT = {
    "/desk:review branch=main": 'review {"branch": "main"}',
    "/desk:review depth=2 'my branch'": 'review {"branch": "my branch", "depth": "2"}',
}
REFUSED = ("/desk:review a=b", "/desk:review", "/desk:review main 3 extra", "/desk:reviw main", "/nobody:review main")


async def test_a_prompt_is_a_command_and_its_arguments_are_checked(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Done.", "Done."]) as runner:
        offer(runner, tmp_path)
        await runner.run("-p", "hi")
        for typed, sent in SENT.items():
            done = await runner.run("-p", typed)
            assert (done.code, said(runner.server.chats)) == (0, sent), done.err
        for typed in REFUSED:
            done = await runner.run("-p", typed)
            assert (done.code, len(runner.server.chats)) == (2, 3), done.err


async def test_the_chat_completes_prompts_and_attaches_resources(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Reviewed.", "Read."]) as runner:
        offer(runner, tmp_path)
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("›")
            terminal.type(f"hi{ENTER}")
            await terminal.wait_for("Hello.")
            terminal.type("/desk")
            await terminal.wait_for("/desk:review", "Review a change")
            terminal.type(f"{TAB} main{ENTER}")
            await terminal.wait_for("Reviewed.")
            assert 'review {"branch": "main"}' in said(runner.server.chats)
            terminal.type("what about @desk:notes://tom")
            await terminal.wait_for("desk:notes://tomorrow")
            terminal.type(f"{TAB} and mail me@desk:x?{ENTER}")
            await terminal.wait_for("+ desk:notes://tomorrow", "Read.")

    assert "text of notes://tomorrow" in str(runner.server.chats[-1]["messages"])


async def test_resources_are_listed_shown_and_attached(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Notes."]) as runner:
        offer(runner, tmp_path)
        await runner.run("-p", "hi")
        listed = await runner.run("-p", "/resource")
        shown = await runner.run("-p", "/resource desk notes://today")
        await runner.run("-p", "what is in @desk:notes://today?")
        attached = str(runner.server.chats[-1]["messages"])

    assert "@desk:notes://today" in listed.out
    assert "text of notes://today" in shown.out
    assert "text of notes://today" in attached
