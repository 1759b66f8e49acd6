"""What a compression leaves in the session's metadata."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.context import CompressionRecord
from ollm.domain.session import SessionMetadata
from ollm.services.chat_compression import make_compression_changes
from tests.covers import covers

many = settings(max_examples=120, deadline=None)


@covers("P13", "S3.8", "D114")
@many
@given(st.integers(0, 1000), st.integers(0, 5))
def test_the_count_in_the_metadata_goes_up_by_exactly_one(before: int, records: int) -> None:
    """Feature: services-sessions, Property 13: Compression count increments."""
    metadata = SessionMetadata(compression_count=before, compression_history=({},) * records)
    record = CompressionRecord(
        timestamp="2026-01-01T00:00:00.000Z",
        trigger="auto",
        strategy="hybrid",
        original_token_count=10,
        compressed_token_count=5,
        message_ids=(1,),
        checkpoint=None,
    )

    changes = make_compression_changes(metadata, record)

    assert changes["compressionCount"] == before + 1
    assert len(changes["compressionHistory"]) == records + 1
    assert changes["compressionHistory"][-1]["originalTokenCount"] == 10
