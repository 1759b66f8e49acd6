"""How fast the model writes."""

from ollm.cli.screen.speed import OutputSpeedMeter
from tests.cli.screen.samples import Clock


def measure(tokens: int, seconds: float) -> float:
    """The speed after an answer of so many pieces, all but the first counted at its end."""
    clock = Clock()
    meter = OutputSpeedMeter(clock)
    meter.count()
    clock.time += seconds
    for _ in range(tokens - 1):
        meter.count()
    meter.finish_answer()
    return meter.value


def test_the_speed_is_pieces_by_seconds_since_the_first() -> None:
    assert measure(20, 2.0) == 10.0


def test_a_short_or_sudden_answer_says_nothing_about_speed() -> None:
    assert measure(5, 2.0) == 0.0
    assert measure(6, 2.0) == 3.0
    assert measure(50, 0.2 - 1e-9) == 0.0
    assert measure(50, 0.25) == 200.0


def test_each_answer_is_counted_alone_and_the_last_speed_stays() -> None:
    clock = Clock()
    meter = OutputSpeedMeter(clock)
    for _ in range(10):
        clock.time += 0.5
        meter.count()
    assert meter.tokens == 10
    meter.finish_answer()
    assert (meter.tokens, round(meter.value, 2)) == (0, 2.22)
    meter.finish_answer()
    assert round(meter.value, 2) == 2.22
    meter.count()
    meter.reset()
    assert meter.tokens == 0
