"""Rules written while a conversation is open: stricter ones hold for its next call, others after `/config reload`."""

from pathlib import Path
from typing import Any

from tests.cli.running import running
from tests.cli.terminal import ENTER, ESCAPE, Terminal, at_terminal
from tests.daemon.running import daemon
from tests.servers.answers import Answer, Request

READ_ALLOWED = "policy: {rules: [{tool: shell, action: allow}]}\n"
READ_DENIED = "policy:\n  rules:\n    - {tool: read_file, action: deny, message: not today}\n"


def read_then_tell(request: Request) -> Answer:
    """Read the file in every turn, then repeat what came back."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        return Answer(text=f"Result: {last['content']}")
    if "touch" in last["content"]:
        return Answer(calls=[("shell", {"command": "touch made"})])
    return Answer(calls=[("read_file", {"path": "a.txt"})])


def results(chats: list[Any]) -> list[str]:
    return [chat["messages"][-1]["content"] for chat in chats if chat["messages"][-1]["role"] == "tool"]


async def ask(terminal: Terminal, text: str, *wanted: str) -> None:
    terminal.type(text + ENTER)
    await terminal.wait_for(*wanted)


async def test_a_chat_obeys_a_new_deny_rule_at_once_and_loosens_only_by_reload(tmp_path: Path) -> None:
    async with running(tmp_path, read_then_tell) as runner:
        config = runner.home / "config.yaml"
        (runner.workspace / "a.txt").write_text("forty-two\n")
        async with at_terminal(runner, "chat") as terminal:
            await ask(terminal, "one", "Result: forty-two")
            config.write_text(READ_DENIED)
            await ask(terminal, "two", "rules were changed", "not today")
            config.write_text(READ_ALLOWED)
            await ask(terminal, "touch three", "$ touch made")
            terminal.type(ESCAPE)
            await terminal.wait_for("stopped")
            assert not (runner.workspace / "made").exists()
            await ask(terminal, "/config reload", "The changed rules apply now.")
            await ask(terminal, "touch four", "Result: ")
            assert await terminal.wait_until((runner.workspace / "made").exists)

    first, second, *_ = results(runner.server.chats)
    assert "forty-two" in first
    assert "not today" in second
    assert "forty-two" not in second


async def test_a_daemon_session_obeys_a_new_deny_rule_and_says_so(tmp_path: Path) -> None:
    async with daemon(tmp_path, read_then_tell) as found:
        (found.workspace / "a.txt").write_text("forty-two\n")
        session = await found.open()
        before = await found.say(session, "one")
        (found.home / "config.yaml").write_text(READ_DENIED)
        after = await found.say(session, "two")
        (found.home / "config.yaml").write_text("policy: {rules: [\n")
        broken = await found.say(session, "three")
        (found.home / "config.yaml").unlink()
        reloaded = await found.ask("POST", f"/sessions/{session}/commands", {"name": "config", "arguments": "reload"})
        await found.say(session, "four")

    assert not [event for event in before if event["type"] == "notice"]
    assert any("rules were changed" in str(event.get("text")) for event in after if event["type"] == "notice")
    assert any("config.yaml" in str(event.get("text")) for event in broken if event["type"] == "notice")
    assert reloaded.status == 200
    first, second, third, fourth = results(found.server.chats)
    assert "forty-two" in first
    assert "not today" in second
    assert "not today" in third
    assert "forty-two" in fourth
