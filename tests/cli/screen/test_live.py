"""What is alive on the screen: waiting, thinking, writing, tools."""

from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import (
    PrefillProgress,
    TurnStarted,
)
from tests.cli.screen.samples import PLAIN, Clock


def test_the_seconds_left_for_reading_count_down_and_only_a_server_s_own_count_is_a_share() -> None:
    clock = Clock()
    shown = Transcript(PLAIN, lambda _: None, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    shown.show(PrefillProgress(total=2000, seconds_left=20.0))
    assert "reading the prompt, about 20 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "reading the prompt, about 5 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 7
    assert "reading the prompt (22 s)" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "waiting for the model (37 s)" in shown.live.render_lines(80, 5)[0]
    shown.show(PrefillProgress(processed=1000, total=2000, seconds_left=10.0))
    assert "reading the prompt 50 %, about 10 s left" in shown.live.render_lines(80, 5)[0]
