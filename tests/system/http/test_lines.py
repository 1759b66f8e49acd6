"""Lines and events out of a stream of bytes, wherever the chunks were cut."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.system import http


async def chunked(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        yield data[start:end]


async def collected(source: AsyncIterator[object]) -> list[object]:
    return [item async for item in source]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=20)


@given(values=st.lists(texts), cuts=st.lists(st.integers(0, 500)), end=st.sampled_from([b"\n", b"\r\n"]))
def test_lines_come_whole_wherever_the_chunks_are_cut(values: list[str], cuts: list[int], end: bytes) -> None:
    data = b"".join(json.dumps(value, ensure_ascii=False).encode() + end for value in values)

    found = asyncio.run(collected(http.iter_lines(chunked(data, cuts))))

    assert [json.loads(line) for line in found] == values  # type: ignore[arg-type]


@given(values=st.lists(texts.filter(bool)), cuts=st.lists(st.integers(0, 500)))
def test_events_come_whole_wherever_the_chunks_are_cut(values: list[str], cuts: list[int]) -> None:
    data = b": a comment\n\n" + b"".join(f"data: {value}\n\n".encode() for value in values)

    found = asyncio.run(collected(http.iter_server_events(chunked(data, cuts))))

    assert [event.data for event in found] == values  # type: ignore[attr-defined]


async def test_an_event_has_a_name_an_id_and_lines_of_data() -> None:
    data = b"\xef\xbb\xbfid: 7\r\nevent: note\r\ndata: one\r\ndata:two\r\nretry: 5\r\n\r\ndata: last"

    found = await collected(http.iter_server_events(chunked(data, [])))

    assert found == [http.ServerEvent("one\ntwo", "note", "7"), http.ServerEvent("last", "message", "7")]


async def test_a_line_over_the_limit_is_refused() -> None:
    for data in (b"x" * 100, b"x" * 100 + b"\n", b"data: x\n" * 100):
        with pytest.raises(http.TooLarge):
            await collected(http.iter_server_events(chunked(data, list(range(0, 800, 7))), limit=50))


async def test_only_the_new_line_character_ends_a_line() -> None:
    data = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\n".encode()

    assert await collected(http.iter_lines(chunked(data, []))) == [data[:-1]]
