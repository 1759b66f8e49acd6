"""Tombstones are written where something was sent, and nowhere else."""

from pathlib import Path

from ollm.domain.clock import now
from ollm.store.archive_tombstones import ArchiveTombstones
from ollm.store.team_archive.state import ArchiveState

SESSION = "00000000-0000-4000-8000-000000000001"


def test_a_deletion_is_remembered_until_it_is_withdrawn(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    tombstones = ArchiveTombstones(path, now)
    tombstones.add_deletion(SESSION)
    assert not path.exists()

    ArchiveState(path).get_machine_id()
    tombstones.add_deletion(SESSION)
    assert ArchiveState(path).list_tombstones() == [SESSION]
    tombstones.withdraw_deletion(SESSION)
    assert ArchiveState(path).list_tombstones() == []
