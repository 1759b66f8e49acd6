"""The daemon's process, from start to end."""

import json
import signal
from pathlib import Path

from tests.daemon.running import daemon
from tests.servers.answers import Answer


async def test_running_turns_may_end_when_the_daemon_is_stopped(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text="a slow but whole answer", pace=0.1)]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "slowly"}) as events:
            async for event in events:
                if event["type"] == "text-delta":
                    break
            assert await found.end(signal.SIGTERM) == 0

        document = json.loads((found.home / "sessions" / f"{session}.json").read_text())

    assert document["messages"][-1]["parts"][0]["text"] == "a slow but whole answer"
    assert not (found.home / "run" / "daemon.sock").exists()
