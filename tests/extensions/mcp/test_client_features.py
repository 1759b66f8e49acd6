"""Questions, progress and log lines of a server, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.running import running
from tests.cli.terminal import ENTER, at_terminal
from tests.extensions.raw_servers import configure, raw_entry
from tests.servers.answers import Answer

BOOK = [{"name": "book", "description": "Book a table", "inputSchema": {"type": "object", "properties": {}}}]
FORM = {
    "message": "For how many, and when?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "title": "Guests"},
            "meal": {"type": "string", "enum": ["lunch", "dinner"]},
        },
        "required": ["guests", "meal"],
    },
}
RULES = {"rules": [{"tool": "inn__*", "action": "allow"}]}
CALL = Answer(calls=[("inn__book", {})])


def told_to_model(chats: list[dict[str, Any]]) -> str:
    return str(chats[-1]["messages"][-1]["content"])


async def test_a_question_of_a_server_is_asked_field_by_field_and_checked(tmp_path: Path) -> None:
    async with running(tmp_path, [CALL, "Booked."]) as runner:
        configure(runner, mcpServers={"inn": raw_entry(tmp_path, "inn", tools=BOOK, asks={"book": FORM})}, policy=RULES)
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("›")
            terminal.type(f"book a table{ENTER}")
            for shown, typed in (("Guests", "many"), ("not a whole number", "4"), ("one of lunch, dinner", "dinner")):
                await terminal.wait_for(shown, "[y] type an answer")
                terminal.type("y")
                await terminal.wait_for("answer:", "Enter sends it")
                terminal.type(f"{typed}{ENTER}")
            await terminal.wait_for("  › many", "  › dinner", "Booked.")
        async with at_terminal(runner, "-c", size=(90, 50)) as terminal:
            await terminal.wait_for("  ? inn asks: For how many, and when?", "  › 4\n", "  › dinner\n", "Resumed")

    assert json.loads(told_to_model(runner.server.chats)) == {
        "action": "accept",
        "content": {"guests": 4, "meal": "dinner"},
    }


async def test_where_nobody_can_be_asked_a_question_of_a_server_is_declined_and_told(tmp_path: Path) -> None:
    async with running(tmp_path, [CALL, "Well."]) as runner:
        configure(runner, mcpServers={"inn": raw_entry(tmp_path, "inn", tools=BOOK, asks={"book": FORM})})
        done = await runner.run("-p", "book a table", "--yes")

    assert json.loads(told_to_model(runner.server.chats)) == {"action": "decline"}
    assert "For how many, and when?" in done.err
    assert "cannot ask" in done.err


async def test_progress_is_shown_and_keeps_a_call_alive_beyond_its_time_limit(tmp_path: Path) -> None:
    async with running(tmp_path, [CALL, "Done."]) as runner:
        slow = raw_entry(tmp_path, "inn", tools=BOOK, progress={"book": 4}, progressPause=2)
        configure(runner, mcpServers={"inn": {**slow, "timeout": 7}})
        done = await runner.run("-p", "book", "--yes", "-o", "stream-json")

    events = [json.loads(line) for line in done.out.splitlines()]
    shown = "".join(event["text"] for event in events if event["type"] == "tool-output")
    assert "4 of 4: step 4" in shown
    assert told_to_model(runner.server.chats) == "book {}"


async def test_an_error_in_a_servers_log_is_shown_and_everything_is_logged_without_secrets(tmp_path: Path) -> None:
    lines = [
        {"level": "info", "data": "opened ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
        {"level": "error", "data": {"why": "the kitchen is closed"}},
        *({"level": "error", "data": f"again {number}"} for number in range(20)),
    ]
    async with running(tmp_path, [CALL, "Done."]) as runner:
        configure(
            runner,
            mcpServers={"inn": raw_entry(tmp_path, "inn", tools=BOOK, logs={"book": lines})},
        )
        done = await runner.run("-p", "book", "--yes", OLLM_LOG_LEVEL="debug")

    assert "inn reports" in done.err
    assert "the kitchen is closed" in done.err
    assert "again 19" not in done.err
    log = (runner.home / "logs" / "ollm.log").read_text(encoding="utf-8")
    assert "again 19" in log
    assert "opened" in log
    assert "ghp_abcdefghijklmnopqrstuvwxyz0123456789" not in log
