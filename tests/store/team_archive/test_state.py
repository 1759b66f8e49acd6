"""What a machine knows of the archive outlives a damaged file and stays its own."""

from pathlib import Path

from ollm.store.team_archive.state import ArchiveState, SentState

SESSION = "00000000-0000-4000-8000-000000000001"


def test_a_machine_keeps_its_id_and_two_homes_differ(tmp_path: Path) -> None:
    first = ArchiveState(tmp_path / "a.db").get_machine_id()

    assert ArchiveState(tmp_path / "a.db").get_machine_id() == first
    assert ArchiveState(tmp_path / "b.db").get_machine_id() != first


def test_a_tombstone_stays_until_it_is_removed(tmp_path: Path) -> None:
    state = ArchiveState(tmp_path / "a.db")
    state.set_sent(SESSION, SentState("stamp", "target", 3, ""))

    state.add_tombstone(SESSION)

    assert state.get_sent(SESSION)
    assert ArchiveState(tmp_path / "a.db").list_tombstones() == [SESSION]
    state.remove_tombstone(SESSION)
    assert state.list_tombstones() == []

    state.add_tombstone(SESSION)
    state.confirm_deletion(SESSION)
    assert (state.list_tombstones(), state.get_sent(SESSION)) == ([], None)


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"no database" * 100)

    assert ArchiveState(tmp_path / "a.db").list_sent() == {}
    assert list(tmp_path.glob("a.db.damaged-*"))


def test_what_was_sent_and_listed_is_known_until_it_is_forgotten(tmp_path: Path) -> None:
    state = ArchiveState(tmp_path / "a.db")
    first, second = SentState("stamp", "target", 3, ""), SentState("other", "target", 4, "ada")
    assert (state.get_sent(SESSION), state.get_fact("x"), state.load_listed()) == (None, "", b"[]")
    state.set_sent(SESSION, first)
    state.set_sent("s2", first)
    state.set_sent("s2", second)
    state.set_fact("x", "y")
    state.save_listed([{"a": 1}])

    again = ArchiveState(tmp_path / "a.db")
    assert again.list_sent() == {SESSION: first, "s2": second}
    assert (again.get_sent("s2"), again.get_fact("x"), again.load_listed()) == (second, "y", b'[{"a":1}]')
    assert int(again.get_fact("listed-at")) > 1_700_000_000_000
    again.forget_sent(SESSION)
    assert state.list_sent() == {"s2": second}
    state.add_tombstone("s2")
    assert state.list_tombstones() == [], "it is another person's"
