"""The list of a session's checkpoints on disk."""

from pathlib import Path

from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords, group_turns
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


def test_records_come_by_number_and_nothing_is_dropped_before_the_first(tmp_path: Path) -> None:
    records = CheckpointRecords(FileObjects(tmp_path), "s")
    assert (records.load(), records.next_number()) == ([], 1)
    for number in (2, 1):
        records.add(make(number))
    lines = (tmp_path / "sessions" / "s.jsonl").read_bytes()

    records.drop_before(1)

    assert records.load() == [make(1), make(2)]
    assert (tmp_path / "sessions" / "s.jsonl").read_bytes() == lines
    records.drop_before(9)
    (mark,) = records.load()
    assert mark == CheckpointRecord(number=2, kind="pruned", message_id=4, started="t2")
    assert not mark.has_trees
    assert make(1).has_trees


def test_the_stretches_of_one_turn_stand_together() -> None:
    def tell(*records: tuple[int, str]) -> list[int]:
        made = [
            CheckpointRecord(number=number, kind=kind, message_id=message, started="")  # type: ignore[arg-type]
            for number, (message, kind) in enumerate(records)
        ]
        return [len(group) for group in group_turns(made)]

    assert tell() == []
    assert tell((1, "turn"), (1, "turn"), (3, "turn")) == [2, 1]
    assert tell((1, "turn"), (1, "undo"), (1, "turn"), (1, "undo"), (1, "undo")) == [1, 1, 1, 1, 1]


def test_what_a_line_does_not_say_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "s.jsonl").write_text('{"number": 7, "kind": "turn", "messageId": 4, "started": "t"}\n')

    (found,) = CheckpointRecords(FileObjects(tmp_path), "s").load()

    assert (found.number, found.message_id, found.begin, found.end, found.ended) == (7, 4, "", "", "")
    assert (found.files, found.ignored, found.uncovered, found.restored) == (0, 0, 0, None)
    assert (found.in_editor, found.named, found.cut_off) == ((), (), False)
