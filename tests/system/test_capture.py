"""Output kept in memory that does not grow."""

import asyncio
import os

from hypothesis import given
from hypothesis import strategies as st

from ollm.system.capture import Capture, HeadAndTail


@given(pieces=st.lists(st.text(max_size=30)), limit=st.integers(2, 60))
def test_the_beginning_and_the_end_are_kept_whatever_the_pieces(pieces: list[str], limit: int) -> None:
    kept = HeadAndTail(limit)
    for piece in pieces:
        kept.add(piece)
    whole, half = "".join(pieces), limit // 2

    assert kept.characters == len(whole)
    assert kept.omitted_characters == max(0, len(whole) - 2 * half)
    if kept.omitted_characters:
        assert kept.render_text().startswith(whole[:half])
        assert kept.render_text().endswith(whole[-half:])
        assert f"{kept.omitted_characters} characters" in kept.render_text()
    else:
        assert kept.render_text() == whole


def test_what_is_kept_does_not_grow() -> None:
    kept = HeadAndTail(1000)
    for _ in range(10_000):
        kept.add("x" * 700)

    assert sum(map(len, kept._tail)) < 2000


async def test_a_character_cut_by_a_read_arrives_whole() -> None:
    reading, writing = os.pipe()
    texts: list[str] = []
    capture = Capture(reading, texts.append)
    for byte in "é€😀".encode() + b"\xff":
        os.write(writing, bytes([byte]))
        await asyncio.sleep(0)
        capture.drain()
    os.close(writing)

    await capture.ended.wait()

    assert "".join(texts) == "é€😀\ufffd"
