"""What was said as the pages show it."""

from pathlib import Path

from tests.daemon.running import daemon
from tests.servers.answers import Answer

HOSTILE = "<img src=x onerror=alert(1)> **bold** [x](javascript:alert(1))"


async def test_messages_come_as_clean_html_with_their_calls(tmp_path: Path) -> None:
    script = [Answer(calls=[("read_file", {"path": "a.txt"})]), Answer(text=HOSTILE, thinking="hm"), "more"]
    async with daemon(tmp_path, script) as found:
        (found.workspace / "a.txt").write_text("x" * 30_000)
        session = await found.open()
        await found.say(session, "<script>alert(2)</script>")
        await found.say(session, "again")
        whole = (await found.ask("GET", f"/sessions/{session}/transcript")).json
        part = (await found.ask("GET", f"/sessions/{session}/transcript?before=4&after=1")).json
        tail = (await found.ask("GET", f"/sessions/{session}/transcript?limit=1")).json

    html = "".join(message["html"] for message in whole["messages"])
    assert [message["number"] for message in whole["messages"]] == [1, 2, 3, 4, 5, 6]
    assert whole["last"] == 6
    assert "&lt;script&gt;alert(2)" in html
    assert "<strong>bold</strong>" in html
    assert "<img" not in html
    assert "javascript:" not in html.replace("[x](javascript:", "")
    assert "data-call=" in html
    assert whole["messages"][2]["html"] == "", "a result stands with its call"
    assert len(html) < 45_000
    assert [message["number"] for message in part["messages"]] == [2, 3]
    assert [message["number"] for message in tail["messages"]] == [6]
