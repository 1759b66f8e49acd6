"""One streamed answer: pieces become events and parts, and what was said is saved in time."""

from collections.abc import AsyncIterator, Callable

import pytest

from ollm.domain.context import Usage
from ollm.domain.events import Event, PrefillProgress, TextDelta, ThinkingDelta
from ollm.domain.messages import AnyPart, TextPart, ThinkingPart
from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, ProgressPiece, TextPiece, ThinkingPiece
from ollm.runtime.turn_calls import SAVE_INTERVAL_SECONDS, StreamedAnswer


class Heard:
    """An answer with a clock that moves by one step with each look at it, and everything it told."""

    def __init__(self, step: float = 0.0) -> None:
        self.events: list[Event] = []
        self.saved: list[tuple[AnyPart, ...]] = []
        self.checked: list[tuple[str, bool]] = []
        self.time, self.step = 0.0, step
        self.answer = StreamedAnswer(self.events.append, self.save, self.look)

    def look(self) -> float:
        self.time += self.step
        return self.time

    async def save(self, parts: tuple[AnyPart, ...]) -> None:
        self.saved.append(parts)

    async def read(self, *pieces: AnyPiece, check: Callable[[str, bool], None] | None = None) -> StreamedAnswer:
        async def stream() -> AsyncIterator[AnyPiece]:
            for piece in pieces:
                yield piece

        await self.answer.read(stream(), check or (lambda text, thinking: self.checked.append((text, thinking))))
        return self.answer


async def test_pieces_become_events_parts_and_the_end() -> None:
    heard = Heard()
    call = CallPiece("ls", {})

    answer = await heard.read(
        ProgressPiece(processed=1, total=5, stage="reading", seconds_left=2.5),
        ThinkingPiece("h"),
        ThinkingPiece("m"),
        TextPiece("a"),
        TextPiece("b"),
        ThinkingPiece("again"),
        call,
        FinishPiece("stop", Usage(prompt_tokens=3)),
    )

    assert answer.parts == (ThinkingPart("hm"), TextPart("ab"), ThinkingPart("again"))
    assert (answer.text, answer.calls, answer.finish) == ("ab", [call], "stop")
    assert answer.usage == Usage(prompt_tokens=3)
    assert [type(event) for event in heard.events] == [
        PrefillProgress,
        ThinkingDelta,
        ThinkingDelta,
        TextDelta,
        TextDelta,
        ThinkingDelta,
    ]
    assert heard.events[0] == PrefillProgress(processed=1, total=5, stage="reading", seconds_left=2.5)
    assert heard.checked == [("h", True), ("m", True), ("a", False), ("b", False), ("again", True)]


async def test_what_was_said_is_saved_every_two_seconds_and_not_more_often() -> None:
    quick = Heard(step=SAVE_INTERVAL_SECONDS / 20)
    await quick.read(*[TextPiece("x")] * 8)
    assert quick.saved == []
    slow = Heard(step=SAVE_INTERVAL_SECONDS)
    await slow.read(TextPiece("a"), TextPiece("b"), FinishPiece())

    assert slow.saved == [(TextPart("a"),), (TextPart("ab"),)]


async def test_a_check_that_stops_it_leaves_what_was_said() -> None:
    def stop(text: str, thinking: bool) -> None:
        if text == "b":
            raise ValueError("enough")

    heard = Heard()
    with pytest.raises(ValueError, match="enough"):
        await heard.read(TextPiece("a"), TextPiece("b"), TextPiece("c"), check=stop)

    assert heard.answer.text == "ab"
