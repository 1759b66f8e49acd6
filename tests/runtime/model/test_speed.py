"""How fast a model read and wrote, from an ordinary answer."""

import pytest

from ollm.domain.context import Usage
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import AnyPiece, FinishPiece, ProgressPiece, TextPiece, ThinkingPiece
from ollm.runtime.model import speed
from ollm.runtime.model.speed import SpeedMeter

FACTS = ModelFacts(key="k")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be moved by the test."""
    now = [100.0]
    monkeypatch.setattr(speed, "monotonic", lambda: now[0])
    return now


def measure(
    clock: list[float],
    *timed: tuple[float, AnyPiece],
    prompt: int = 200,
    reused: int = 0,
    written: int = 21,
    **finish: bool,
) -> ModelFacts:
    clock[0] = 100.0
    meter = SpeedMeter()
    for at, piece in timed:
        clock[0] = 100.0 + at
        meter.observe_piece(piece)
    usage = Usage(prompt_tokens=prompt, reused_tokens=reused, completion_tokens=written)
    meter.observe_piece(FinishPiece("stop", usage, **finish))  # type: ignore[arg-type]
    return meter.update_facts(FACTS)


TEXT = ((2.0, TextPiece("a")), (4.0, TextPiece("b")))


def test_reading_lasts_until_the_first_word_and_writing_from_there_to_the_last(clock: list[float]) -> None:
    facts = measure(clock, *TEXT, counts_reuse=True)

    assert (facts.prefill_per_second, facts.decode_per_second) == (100.0, 10.0)
    assert measure(clock, (2.0, ThinkingPiece("a")), (4.0, TextPiece("b")), counts_reuse=True) == facts


def test_what_came_from_the_cache_was_not_read(clock: list[float]) -> None:
    assert measure(clock, *TEXT, prompt=300, reused=100, counts_reuse=True).prefill_per_second == 100.0
    assert measure(clock, *TEXT, counts_reuse=False).prefill_per_second is None


@pytest.mark.parametrize(
    ("prompt", "written", "read", "write"),
    [(99, 21, None, 10.0), (100, 21, 50.0, 10.0), (200, 15, 100.0, None), (200, 16, 100.0, 7.5)],
)
def test_short_answers_tell_nothing(
    clock: list[float], prompt: int, written: int, read: float | None, write: float | None
) -> None:
    facts = measure(clock, *TEXT, prompt=prompt, written=written, counts_reuse=True)

    assert (facts.prefill_per_second, facts.decode_per_second) == (read, write)


def test_what_took_no_time_tells_nothing(clock: list[float]) -> None:
    facts = measure(clock, (0.1, TextPiece("a")), (0.2, TextPiece("b")), counts_reuse=True)
    assert (facts.prefill_per_second, facts.decode_per_second) == (None, None)
    assert measure(clock, counts_reuse=True) == FACTS


def test_a_model_that_was_loaded_meanwhile_tells_nothing_of_reading(clock: list[float]) -> None:
    facts = measure(clock, (0.0, ProgressPiece(stage="loading")), *TEXT, counts_reuse=True)

    assert (facts.prefill_per_second, facts.decode_per_second) == (None, 10.0)


def test_what_is_known_stays(clock: list[float]) -> None:
    meter = SpeedMeter()
    known = ModelFacts(key="k", prefill_per_second=1.0, decode_per_second=2.0)

    assert meter.update_facts(known) is known
