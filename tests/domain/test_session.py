"""The session file's names, as the requirements have them."""

import msgspec

from ollm.domain.session import ModeChange, Session, SessionMetadata
from tests.covers import covers


@covers("S2.1")
def test_a_session_is_written_under_its_documented_names() -> None:
    session = Session(
        session_id="s",
        start_time="a",
        last_activity="b",
        model="m",
        provider="p",
        messages=(),
        tool_calls=(),
        metadata=SessionMetadata(),
    )

    written = msgspec.json.decode(msgspec.json.encode(session))

    assert list(written) == [
        *("sessionId", "startTime", "lastActivity", "model", "provider", "messages", "toolCalls", "metadata"),
    ]
    assert written["metadata"]["tokenCount"] == 0
    assert written["metadata"]["compressionHistory"] == []


def test_a_change_of_mode_says_from_where() -> None:
    change = ModeChange(from_="plan", to="code", timestamp="t", trigger="manual")

    assert msgspec.to_builtins(change) == {
        "from": "plan",
        "to": "code",
        "timestamp": "t",
        "trigger": "manual",
        "confidence": 1.0,
    }
