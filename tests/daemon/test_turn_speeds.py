"""How quick the last turns were."""

from ollm.daemon.turn_speeds import MAX_TURNS, TurnSpeeds
from ollm.domain.context import Usage
from ollm.domain.events import MessageRecorded, TextDelta, ThinkingDelta, TurnFinished, TurnStarted


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


def test_a_turn_without_words_has_no_speed_and_only_the_newest_are_kept() -> None:
    speeds = TurnSpeeds()
    for number in range(MAX_TURNS + 5):
        speeds.record_event(TurnStarted(message_id=number, text="x"))
        speeds.record_event(TurnFinished(reason="no-server"))

    assert len(speeds.turns) == MAX_TURNS
    assert speeds.turns[-1].message_id == MAX_TURNS + 4
    assert speeds.turns[-1].first_word_seconds is None
    assert speeds.turns[-1].tokens_per_second is None
    assert speeds.turns[-1].reused_share is None
