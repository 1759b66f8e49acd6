"""The list of a session's checkpoints on disk."""

from pathlib import Path

from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords
from ollm.store.file_objects import FileObjects


def make(number: int, begin: str = "b", end: str = "e") -> CheckpointRecord:
    return CheckpointRecord(
        number=number, kind="turn", message_id=2 * number, started=f"t{number}", begin=begin, end=end
    )


def test_the_end_of_a_record_replaces_its_beginning_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    records = CheckpointRecords(FileObjects(tmp_path), "s")
    records.add(make(1, end=""))
    records.add(make(1))
    with (tmp_path / "sessions" / "s.jsonl").open("ab") as file:
        file.write(b'{"number": 2, "ki')

    assert records.load() == [make(1)]
    records.add(make(2))
    assert [record.number for record in records.load()] == [1, 2]
    assert records.next_number() == 3


def test_dropped_records_leave_a_mark(tmp_path: Path) -> None:
    records = CheckpointRecords(FileObjects(tmp_path), "s")
    for number in (1, 2, 3):
        records.add(make(number))

    records.drop_before(3)

    assert [(record.number, record.kind, record.message_id) for record in records.load()] == [
        (2, "pruned", 4),
        (3, "turn", 6),
    ]
