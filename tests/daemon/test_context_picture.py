"""Context and speeds of a session through the API."""

from pathlib import Path

from ollm.daemon.hub import TurnSpeeds
from ollm.domain.context import Usage
from ollm.domain.events import MessageRecorded, TextDelta, ThinkingDelta, TurnFinished, TurnStarted
from tests.daemon.running import daemon


async def test_parts_messages_and_speeds_of_an_open_session_and_of_a_closed_one(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["An answer in some words."] * 3) as found:
        session = await found.open()
        await found.say(session, "one")
        await found.say(session, "two")
        live = (await found.ask("GET", f"/sessions/{session}/context")).json
        await found.ask("DELETE", f"/sessions/{session}")
        closed = (await found.ask("GET", f"/sessions/{session}/context")).json
        missing = await found.ask("GET", "/sessions/00000000-0000-4000-8000-000000000000/context")

    assert live["live"] is True
    assert closed["live"] is False
    for picture in (live, closed):
        assert [one["numbers"] for one in picture["messages"]] == [[1], [2], [3], [4]]
        assert {part["name"] for part in picture["parts"]} >= {"instructions", "tool schemas", "user messages"}
        assert 0 < picture["used"] < picture["window"]
        assert picture["recallableCount"] == 0
    assert [turn["messageId"] for turn in live["turns"]] == [1, 3]
    assert live["reuse"][-1]["reusedShare"] == 1.0
    assert missing.status == 404


def test_a_turn_is_timed_by_its_first_word_and_while_words_come() -> None:
    now = [0.0]
    speeds = TurnSpeeds(lambda: now[0])
    usage = Usage(prompt_tokens=200, completion_tokens=30, reused_tokens=150)
    for at, event in (
        (0.0, TurnStarted(message_id=5, text="x")),
        (2.0, ThinkingDelta(text="a")),
        (3.0, TextDelta(text="b")),
        (4.0, MessageRecorded(message_id=6, role="assistant")),
        (9.0, TextDelta(text="c")),
        (10.0, MessageRecorded(message_id=8, role="assistant")),
        (11.0, TurnFinished(reason="answered", usage=usage)),
    ):
        now[0] = at
        speeds.record_event(event)

    (turn,) = speeds.turns
    assert (turn.message_id, turn.first_word_seconds, turn.tokens_per_second) == (5, 2.0, 10.0)
    assert turn.reused_share == 0.75
