"""Logins at MCP servers through the command: made in a browser, kept, renewed, forgotten."""

from __future__ import annotations

import asyncio
import re
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import Ended, Runner, running
from tests.extensions.raw_servers import configure
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
