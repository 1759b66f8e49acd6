"""A prompt the server cut is noticed on proof: an exact count of this very prompt over the reported one."""

import json
from pathlib import Path

from tests.cli.running import running
from tests.servers.answers import Answer


async def test_a_cut_prompt_is_told_and_the_budget_corrected(tmp_path: Path) -> None:
    long = "word " * 1100
    async with running(tmp_path, [Answer(text="ok", prompt_tokens=1100)], kind="llama.cpp", window=4096) as runner:
        done = await runner.run("-p", long, "-o", "stream-json")

    events = [json.loads(line) for line in done.out.splitlines()]
    (cut,) = [event for event in events if event["type"] == "prompt-truncated"]
    assert cut["readTokens"] == 1100
    assert cut["sentTokens"] > 1122
    assert [event["window"] for event in events if event["type"] == "context-usage"][-1] == 1100


async def test_a_low_count_without_proof_changes_nothing(tmp_path: Path) -> None:
    long = "word " * 1100
    async with running(tmp_path, [Answer(text="ok", prompt_tokens=1100)], window=4096) as runner:
        done = await runner.run("-p", long, "-o", "stream-json")

    assert "prompt-truncated" not in done.out
