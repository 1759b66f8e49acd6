"""A text that repeats itself while it streams, and text that only looks so."""

import pytest

from ollm.services.loop_detection.pattern import LoopPattern
from ollm.services.loop_detection.streamed_text import StreamTracker


def stream(text: str, threshold: int = 3, size: int = 7, channel: str = "text") -> tuple[LoopPattern | None, int]:
    """The first pattern, and after how many characters it was found."""
    tracker = StreamTracker(channel, threshold)
    for start in range(0, len(text), size):
        if found := tracker.add(text[start : start + size]):
            return found, start + size
    return None, len(text)


SENTENCE = (
    "I shall now look at the file again and see what is wrong with it, as I did before, line by line and word by word. "
)


def test_the_same_sentence_is_stopped_after_eight_hundred_characters() -> None:
    found, after = stream(SENTENCE * 40)

    assert found is not None
    assert found.type == "repeated-text"
    assert 800 <= after < 1000
    assert found.count == 800 // len(SENTENCE)
    assert found.details.startswith(f"the answer repeats the same text at least {found.count} times: “")


def test_a_long_paragraph_must_come_once_more_than_the_threshold() -> None:
    paragraph = " ".join(f"word{number}" for number in range(150)) + " "

    assert stream(paragraph * 3 + paragraph[:-40])[0] is None
    found = stream(paragraph * 5)[0]
    assert found is not None
    assert found.count == 4
    assert stream(paragraph * 5, threshold=5)[0] is None


def test_thinking_is_told_apart_from_the_answer() -> None:
    found = stream(SENTENCE * 40, channel="thinking")[0]

    assert found is not None
    assert found.details.startswith("the thinking repeats")


def test_blank_space_has_a_name() -> None:
    found = stream("\n" * 2000)[0]

    assert found is not None
    assert "“blank space”" in found.details


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "=" * 79 + "\n",
        " ".join(str(number) for number in range(3000)),
        SENTENCE * 3,
        "".join(f"| {number} | cell | cell |\n" for number in range(200)),
    ],
)
def test_honest_text_is_left_alone(text: str) -> None:
    assert stream(text)[0] is None


def test_a_repetition_after_much_other_text_is_found_too() -> None:
    honest = " ".join(f"n{number}" for number in range(9000))

    assert stream(honest, size=50)[0] is None
    assert stream(honest + SENTENCE * 20, size=50)[0] is not None


def test_a_repetition_that_ended_is_over() -> None:
    """Looked at every 64 characters: what came before the last look and was honest is not looked at again."""
    tracker = StreamTracker("text", 3)

    assert tracker.add("x" * 63) is None
    assert tracker.add(SENTENCE * 40) is not None
    assert tracker.add("y") is None


def test_a_look_is_taken_every_sixty_four_characters() -> None:
    """A repetition is noticed at the first look behind the eight hundredth character."""
    for size, noticed in ((1, 832), (63, 882), (64, 832), (65, 845), (100, 800)):
        assert stream("ab" * 600, size=size)[1] == noticed
    assert stream("ab" * 416, size=1)[0] is not None
    assert stream(("ab" * 416)[:-1], size=1)[0] is None


@pytest.mark.parametrize(("period", "noticed"), [(8000, 32_000), (8192, 32_768), (8193, None), (11_000, None)])
def test_what_is_longer_than_two_windows_is_not_looked_for(period: int, noticed: int | None) -> None:
    unit = "".join(f"{number:08x}" for number in range(period // 8)) + "x" * (period % 8)

    found, after = stream(unit * 7, size=64)

    assert (found is not None, after) == ((True, noticed) if noticed else (False, 7 * period))
