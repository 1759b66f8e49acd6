"""Logging in to MCP servers, and questions that they ask."""

import asyncio
import json
import re
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.extensions.mcp.client_features import FormRefusedError, fill_form
from tests.cli.running import Ended, Runner, running
from tests.cli.terminal import ENTER, at_terminal
from tests.extensions.raw_servers import configure, raw_entry
from tests.servers.answers import Answer
from tests.servers.oauth_mcp import OAuthMcp, serve_oauth_mcp

CALL = Answer(calls=[("safe__whoami", {})])


@pytest.fixture
def safe() -> Iterator[OAuthMcp]:
    with serve_oauth_mcp() as state:
        yield state


async def log_in(runner: Runner) -> Ended:
    """The command, with a browser that says yes at once."""
    process = await runner.start("mcp", "login", "safe", "--no-browser")
    assert process.stderr is not None
    said = b""
    while not (found := re.search(rb"http://\S+/authorize\S+", said)) and (line := await process.stderr.readline()):
        said += line
    if found:
        await asyncio.to_thread(open_page, found[0].decode())
    out, rest = await process.communicate()
    return Ended(process.returncode or 0, out, said + rest)


def open_page(url: str) -> None:
    with urllib.request.urlopen(url, timeout=30) as page:
        page.read()


async def test_a_login_is_kept_renewed_and_forgotten(tmp_path: Path, safe: OAuthMcp) -> None:
    async with running(tmp_path, [CALL, "Ada.", CALL, "Ada.", CALL, "Ada?"]) as runner:
        configure(runner, mcpServers={"safe": {"url": safe.url}})
        refused = await runner.run("mcp", "test", "safe")
        assert "ollm mcp login safe" in refused.out

        safe.life = 1
        done = await log_in(runner)
        assert (done.code, done.out) == (0, "Logged in to safe: 1 tool.\n"), done.err
        kept = runner.home / "mcp-logins.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert "Bearer" not in done.out + done.err

        safe.valid.clear()  # what was granted has expired
        safe.life = 3600
        ended = await runner.run("-p", "who am I?", "--yes")
        assert "you are Ada" in str(runner.server.chats[-1]["messages"][-1]), ended.err
        assert [asked for asked in safe.asked if asked == "GET /authorize"] == ["GET /authorize"]

        safe.valid.clear()
        safe.refreshing.clear()  # and can no longer be renewed
        ended = await runner.run("-p", "who am I?", "--yes")
        told = str(runner.server.chats[-1]["messages"][-1])
        assert "ollm mcp login safe" in told

        assert (await runner.run("mcp", "logout", "safe")).out == "Forgot the login at safe.\n"
        assert "safe" not in kept.read_text(encoding="utf-8")
        assert (await runner.run("mcp", "logout", "safe")).code == 2


async def test_a_refused_login_is_told_and_nothing_is_kept(tmp_path: Path, safe: OAuthMcp) -> None:
    safe.refuse_login = True
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"safe": {"url": safe.url}})
        done = await log_in(runner)

        assert done.code == 1
        assert "access_denied" in done.err
        assert not (runner.home / "mcp-logins.json").exists()


@pytest.mark.parametrize("methods", [["plain"], []])
async def test_a_login_whose_code_others_could_use_is_not_made(
    tmp_path: Path, safe: OAuthMcp, methods: list[str]
) -> None:
    safe.methods = methods
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"safe": {"url": safe.url}})
        done = await log_in(runner)

    assert done.code == 1
    assert f"it takes PKCE as {', '.join(methods) or 'none'}; ollm uses S256 alone" in done.err
    assert "GET /authorize" not in safe.asked
    assert not (runner.home / "mcp-logins.json").exists()


async def test_a_login_that_fails_leaves_the_one_before_as_it_was(tmp_path: Path, safe: OAuthMcp) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"safe": {"url": safe.url}})
        assert (await log_in(runner)).code == 0
        kept = (runner.home / "mcp-logins.json").read_bytes()
        safe.is_broken = True
        failed = await log_in(runner)
        safe.is_broken = False
        used = await runner.run("mcp", "test", "safe")

    assert failed.code == 1, failed.out
    assert (runner.home / "mcp-logins.json").read_bytes() == kept
    assert "whoami" in used.out


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint"])
async def test_no_key_is_sent_over_a_plain_line_to_another_machine(
    tmp_path: Path, safe: OAuthMcp, endpoint: str
) -> None:
    safe.endpoints[endpoint] = "http://login.example/x"
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"safe": {"url": safe.url}})
        done = await log_in(runner)

    assert done.code == 1
    assert "safe names http://login.example for its login, which is not encrypted" in done.err
    assert not (runner.home / "mcp-logins.json").exists()


async def test_a_login_counts_for_its_own_address_alone(tmp_path: Path, safe: OAuthMcp) -> None:
    with serve_oauth_mcp() as other:
        async with running(tmp_path, []) as runner:
            configure(runner, mcpServers={"safe": {"url": safe.url}})
            assert (await log_in(runner)).code == 0
            other.valid |= safe.valid
            configure(runner, mcpServers={"safe": {"url": other.url}})
            said = await runner.run("mcp", "test", "safe")

    assert "ollm mcp login safe" in said.out


async def test_only_a_server_with_an_address_can_be_logged_in_to(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"files": {"command": "cat"}})
        for name in ("files", "nobody"):
            done = await runner.run("mcp", "login", name)
            assert done.code == 2
            assert name in done.err


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "who you are"},
        "age": {"type": "integer"},
        "loud": {"type": "boolean", "default": True},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "size": {"oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
    },
    "required": ["name"],
}


def fill(answers: list[ConfirmationAnswer], schema: Any) -> tuple[dict[str, Any], list[ConfirmationDetails]]:
    asked: list[ConfirmationDetails] = []

    async def ask(details: ConfirmationDetails) -> ConfirmationAnswer:
        asked.append(details)
        return answers.pop(0)

    return asyncio.run(fill_form("inn", "Tell me.", schema, ask)), asked


def typed(*texts: str) -> list[ConfirmationAnswer]:
    return [ConfirmationAnswer(approved=True, text=text) for text in texts]


def test_each_field_is_asked_and_comes_in_its_own_type() -> None:
    found, asked = fill(typed("Ada", "36", "", "Red, blue", "Large"), SCHEMA)

    assert found == {"name": "Ada", "age": 36, "loud": True, "colours": ["red", "blue"], "size": "l"}
    assert asked[0].description.startswith("inn asks: Tell me.\nname: who you are")
    assert asked[-1].description.startswith("size (one of small, large")
    assert all(details.typed and details.locked for details in asked)


def test_what_may_be_empty_is_left_out_and_what_is_wrong_is_asked_again() -> None:
    found, asked = fill(typed("Ada", "old", "", "", "", ""), SCHEMA)

    assert found == {"name": "Ada", "loud": True}
    assert asked[2].description.startswith("'old' is not a whole number.")


def test_a_no_or_three_wrong_answers_refuse_the_form() -> None:
    with pytest.raises(FormRefusedError):
        fill([ConfirmationAnswer(approved=False)], SCHEMA)
    with pytest.raises(FormRefusedError):
        fill(typed("", "", ""), SCHEMA)


def test_a_form_without_fields_is_a_yes_or_no() -> None:
    found, asked = fill([ConfirmationAnswer(approved=True)], {"type": "object", "properties": {}})

    assert found == {}
    assert not asked[0].typed


@pytest.mark.parametrize(
    "schema", [{}, {"properties": 3}, {"properties": {"a": None}}, {"properties": {"a": {}}, "required": 7}]
)
def test_a_schema_that_makes_no_sense_does_no_harm(schema: dict[str, Any]) -> None:
    assert fill(typed("x"), schema)[0] in ({}, {"a": "x"})


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

FEATURE_CALL = Answer(calls=[("inn__book", {})])


def told_to_model(chats: list[dict[str, Any]]) -> str:
    return str(chats[-1]["messages"][-1]["content"])


async def test_a_question_of_a_server_is_asked_field_by_field_and_checked(tmp_path: Path) -> None:
    async with running(tmp_path, [FEATURE_CALL, "Booked."]) as runner:
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
    async with running(tmp_path, [FEATURE_CALL, "Well."]) as runner:
        configure(runner, mcpServers={"inn": raw_entry(tmp_path, "inn", tools=BOOK, asks={"book": FORM})})
        done = await runner.run("-p", "book a table", "--yes")

    assert json.loads(told_to_model(runner.server.chats)) == {"action": "decline"}
    assert "For how many, and when?" in done.err
    assert "cannot ask" in done.err


async def test_progress_is_shown_and_keeps_a_call_alive_beyond_its_time_limit(tmp_path: Path) -> None:
    async with running(tmp_path, [FEATURE_CALL, "Done."]) as runner:
        slow = raw_entry(tmp_path, "inn", tools=BOOK, progress={"book": 4}, progressPause=1)
        configure(runner, mcpServers={"inn": {**slow, "timeout": 3}})
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
    async with running(tmp_path, [FEATURE_CALL, "Done."]) as runner:
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
