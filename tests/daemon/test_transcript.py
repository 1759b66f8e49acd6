"""What was said as the pages show it."""

from pathlib import Path

from ollm.app import ProcessScope
from ollm.daemon.transcript import TranscriptCache, read_transcript
from tests.daemon.long_session import LONG, write_long_session
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


def test_a_session_of_another_layout_is_read_again_when_its_file_changed_and_not_before(tmp_path: Path) -> None:
    process = ProcessScope({"HOME": str(tmp_path), "OLLM_HOME": str(tmp_path / ".ollm")})
    write_long_session(tmp_path / ".ollm", tmp_path, 30, foreign=True)
    cache = TranscriptCache()
    _, first = cache.load(process, LONG, None, 4)
    assert cache.load(process, LONG, 9, 4)[1] is first
    write_long_session(tmp_path / ".ollm", tmp_path, 31, foreign=True)
    _, again = cache.load(process, LONG, None, 4)

    assert (len(first.messages), len(again.messages)) == (30, 31)
    page = read_transcript(process, cache, LONG, 21, 5, 40)
    assert [message.number for message in page.messages] == list(range(6, 21))


def test_of_a_session_of_ours_a_page_is_read_and_no_more(tmp_path: Path) -> None:
    """Whichever page comes first, what is kept of it never stands for the whole."""
    process = ProcessScope({"HOME": str(tmp_path), "OLLM_HOME": str(tmp_path / ".ollm")})
    write_long_session(tmp_path / ".ollm", tmp_path, 3000)
    cache = TranscriptCache()
    assert len(cache.load(process, LONG, None, 16)[1].messages) < 100

    for before, limit in ((None, 16), (40, 60), (2985, 40), (1500, 40), (None, 200), (2, 1)):
        page = read_transcript(process, cache, LONG, before, 0, limit)
        last = (before or 3001) - 1
        assert [message.number for message in page.messages] == list(range(max(1, last - limit + 1), last + 1))
        assert page.last == last
