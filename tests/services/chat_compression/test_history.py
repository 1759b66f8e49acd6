"""What a compression leaves in the session's metadata."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.messages import TextPart
from tests.covers import covers
from tests.runtime.test_session import MODEL, compression, open_session

many = settings(max_examples=100, deadline=None)


@covers("P13", "S3.8", "D114")
@many
@given(st.integers(0, 1000), st.lists(st.integers(2, 10**6), min_size=1, max_size=4))
def test_the_count_in_the_session_goes_up_by_exactly_one_for_each(before: int, sizes: list[int]) -> None:
    """Feature: services-sessions, Property 13: Compression count increments."""

    async def record(directory: Path) -> tuple[int, list[int]]:
        session = open_session(directory)
        session_id = await session.create(MODEL)
        await session.recorder.record_message("user", (TextPart("hello"),))
        await session.update_metadata({"compressionCount": before})
        await session.close()
        again = open_session(directory)
        await again.resume(session_id, 0)
        for size in sizes:
            await again.record_compression(compression(size))
        metadata = again.load().metadata
        await again.close()
        return metadata.compression_count, [record["originalTokenCount"] for record in metadata.compression_history]

    with tempfile.TemporaryDirectory() as directory:
        assert asyncio.run(record(Path(directory))) == (before + len(sizes), sizes)
