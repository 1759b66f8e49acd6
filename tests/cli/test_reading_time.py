"""The time a model takes to read a prompt, said before it is sent and counted down."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, ENTER, ESCAPE, Terminal, at_terminal
from tests.servers.answers import Answer, Request

LONG = "these are only plain words " * 300
PRICE = re.compile(r"reading ([\d,]+) new tokens, about (\d+) s left")


class SlowReader:
    """Counts what it is sent, reports `speed` tokens a second by its own clock, and stalls on long messages and summaries."""

    def __init__(self) -> None:
        self.speed = 100.0
        self.tokens = 0

    def __call__(self, request: Request) -> Answer:
        cached, self.tokens = self.tokens, len(json.dumps(request.body)) // 4
        if "tools" not in request.body or "plain words" in json.dumps(request.body["messages"][-1])[-20:]:
            return Answer(text="Never said.", stall_after=0)
        return Answer(
            text=" ".join(f"Number {number} is {number * 7919}." for number in range(80)) + "\n\nFine.",
            prompt_tokens=self.tokens,
            cached_tokens=cached,
            read_seconds=(self.tokens - cached) / self.speed,
        )


def read_speed(runner: Runner) -> float:
    (facts,) = json.loads((runner.home / "model-facts.json").read_text()).values()
    return float(facts["prefillPerSecond"])


async def send(terminal: Terminal, text: str, *wanted: str) -> None:
    terminal.type(text + ENTER)
    await terminal.wait_for(*wanted)


async def test_the_chat_says_how_long_reading_takes_and_counts_it_down(tmp_path: Path) -> None:
    async with running(tmp_path, SlowReader()) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("provider: {contextWindow: 32768}\n")
        async with at_terminal(runner, "chat") as terminal:
            await send(terminal, "hi", "Fine.")
            assert "new tokens" not in terminal.text(), "the speed is not known yet"
            await stops_while_it_reads(terminal, runner)
            for number in range(4):
                await send(terminal, f"question {number}", f"› question {number}")
                await terminal.wait_for(gone="Esc stops")
            await send(terminal, "/model scripted", "Switched to scripted", "Your next message reads")
            await send(terminal, "/compact", "compacting older messages: reads", "s left")
            terminal.type(ESCAPE)
            await terminal.wait_for(gone="Esc stops")
            terminal.type(CTRL_D)
            await terminal.ended()
        assert read_speed(runner) == pytest.approx(100, rel=0.05)


async def stops_while_it_reads(terminal: Terminal, runner: Runner) -> None:
    terminal.paste(LONG)
    terminal.type(ENTER)
    await terminal.wait_until(lambda: bool(PRICE.search(terminal.screen())))
    first = PRICE.search(terminal.screen())
    assert first, terminal.text()
    fresh, seconds = int(first[1].replace(",", "")), int(first[2])
    assert 10 <= seconds == pytest.approx(fresh / 100, abs=2)
    assert fresh < len(json.dumps(runner.server.chats[0])) // 4, (
        "the first message and the tools are in the server's cache"
    )
    assert await terminal.wait_until(lambda: f"about {seconds - 1} s left" in terminal.screen())
    terminal.type(ESCAPE)
    await terminal.wait_for(gone="Esc stops")
    await asyncio.wait_for(runner.server.left.wait(), 30)


async def test_plain_lines_name_the_time_at_a_resume_and_before_a_send(tmp_path: Path) -> None:
    server = SlowReader()
    async with running(tmp_path, server) as runner:
        first = await runner.run("-p", "hi", OLLM_CONTEXT_WINDOW="32768")
        assert "tokens, about" not in first.err
        assert read_speed(runner) == pytest.approx(100, rel=0.05)
        server.speed, server.tokens = 50.0, 0
        second = await runner.run("-p", "and now", "-c", OLLM_CONTEXT_WINDOW="32768")
        assert re.search(r"· reads [\d,]+ new tokens, about \d+ s\n", second.err)
        assert read_speed(runner) == pytest.approx(75, rel=0.05), "an average of both requests"
        (runner.home / "config.yaml").write_text("screen: {plain: true}\nprovider: {contextWindow: 32768}\n")
        async with at_terminal(runner, "chat", "-c") as terminal:
            await terminal.wait_for("Your next message reads", "> ")
            terminal.type("once more" + ENTER)
            await terminal.wait_for("· reads", "new tokens, about", "Fine.")
            terminal.type(CTRL_D)
            await terminal.ended()
