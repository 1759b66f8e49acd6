"""Records: two bodies that differ have digests that differ."""

from ollm.store.team_archive.records import DIGEST_BYTES, ArchiveRecord


def test_a_record_is_told_by_its_body() -> None:
    one, same, other = (ArchiveRecord("message", "1", body) for body in (b"a", b"a", b"b"))

    assert one.digest == same.digest != other.digest
    assert len(one.digest) == DIGEST_BYTES
    assert one.size > 1
