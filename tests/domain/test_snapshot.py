"""A snapshot file: what older versions did not write is taken as absent, not as wrong."""

import msgspec

from ollm.domain.snapshot import ContextSnapshot

OLD = {
    "id": "x",
    "sessionId": "s",
    "timestamp": "t",
    "tokenCount": 5,
    "summary": "hi",
    "userMessages": [{"id": 1, "content": "hi"}],
    "messages": [],
    "metadata": {"model": "m", "contextSize": 8192, "compressionRatio": 1.0, "totalUserMessages": 1},
}


def test_a_snapshot_without_the_newer_fields_is_read() -> None:
    read = msgspec.convert(OLD, ContextSnapshot)

    assert (read.mode, read.checkpoints, read.goal_stack, read.trigger) == (None, (), None, "manual")
    assert read.user_messages == ({"id": 1, "content": "hi"},)


def test_an_unset_field_of_the_metadata_is_not_written() -> None:
    assert set(msgspec.to_builtins(msgspec.convert(OLD, ContextSnapshot).metadata)) == set(OLD["metadata"])
