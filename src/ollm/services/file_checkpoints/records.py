"""The checkpoints of a session in their order: what the files were before each turn that changes some, and after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ollm.domain.struct import Data
from ollm.store.file_objects import FileObjects

RecordKind = Literal["turn", "undo", "rewind", "redo", "pruned", "missed"]


class EditorChange(Data, frozen=True):
    """A file that was changed in an editor: its contents before and after, by their digests in hexadecimal. It is on
    disk when the editor saves it."""

    path: str
    before: str
    after: str


class CheckpointRecord(Data, frozen=True):
    """One stretch in which this session changed files. `message_id` is the newest message of the session when it
    began, `begin` and `end` are trees, in hexadecimal; `end` is missing while it goes on, or where it was cut off.

    `pruned` stands for all before it, which are no longer kept; `missed` for a turn whose state could not be taken."""

    number: int
    kind: RecordKind
    message_id: int
    started: str
    begin: str = ""
    end: str = ""
    ended: str = ""
    restored: int | None = None  # of a rewind: the message it went back to
    files: int = 0
    ignored: int = 0
    uncovered: int = 0
    in_editor: tuple[EditorChange, ...] = ()
    named: tuple[str, ...] = ()  # it changes these files and no others
    cut_off: bool = False  # the process did not take the end: it is what is known to have been done

    @property
    def has_trees(self) -> bool:
        return self.kind not in ("pruned", "missed")


class CheckpointRecords:
    """Reads and writes the list of one session. The line of a record that has ended replaces that of its beginning."""

    def __init__(self, objects: FileObjects, session_id: str) -> None:
        self._objects = objects
        self.session_id = session_id

    def load(self) -> list[CheckpointRecord]:
        found: dict[int, CheckpointRecord] = {}
        for line in self._objects.read_lines(self.session_id):
            try:
                record = msgspec.json.decode(line, type=CheckpointRecord)
            except msgspec.MsgspecError:
                continue
            found[record.number] = record
        return [found[number] for number in sorted(found)]

    def add(self, record: CheckpointRecord) -> None:
        self._objects.append_line(self.session_id, msgspec.json.encode(record))

    def next_number(self) -> int:
        return max((record.number for record in self.load()), default=0) + 1

    def drop_before(self, number: int) -> None:
        """Forget the records before one; a line says so."""
        records = self.load()
        gone = [record for record in records if record.number < number]
        if not gone:
            return
        last = gone[-1]
        mark = CheckpointRecord(
            number=last.number, kind="pruned", message_id=last.message_id, started=last.started, ended=last.ended
        )
        kept = [mark, *(record for record in records if record.number >= number)]
        self._objects.replace_lines(self.session_id, [msgspec.json.encode(record) for record in kept])


def group_turns(records: Iterable[CheckpointRecord]) -> list[list[CheckpointRecord]]:
    """The stretches of a turn together, everything else alone."""
    groups: list[list[CheckpointRecord]] = []
    for record in records:
        last = groups[-1][-1] if groups else None
        if last and record.kind == last.kind == "turn" and record.message_id == last.message_id:
            groups[-1].append(record)
        else:
            groups.append([record])
    return groups
