"""What other parts keep of a session goes when the session is deleted, and nothing else does."""

import json
from pathlib import Path

import pytest

from ollm.domain.errors import NotFoundError
from ollm.store.session_traces import InputHistoryFile, SessionDirectories, SnapshotMapFile

ONE = "aaaa0000-0000-4000-8000-000000000001"
TWO = "aaaa0000-0000-4000-8000-000000000002"


def test_a_sessions_directories_go_and_others_stay(tmp_path: Path) -> None:
    parents = [tmp_path / "snapshots", tmp_path / "undo", tmp_path / "missing"]
    for parent in parents[:2]:
        for session_id in (ONE, TWO):
            (parent / session_id / "deep").mkdir(parents=True)
            (parent / session_id / "deep" / "file").write_text("x")

    SessionDirectories(parents).erase(ONE)

    assert sorted(path.name for parent in parents[:2] for path in parent.iterdir()) == [TWO, TWO]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("x")
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo" / ONE).symlink_to(target)

    SessionDirectories([tmp_path / "undo"]).erase(ONE)

    assert list((tmp_path / "undo").iterdir()) == []
    assert (target / "file").exists()


@pytest.mark.parametrize("name", ["..", "", "../undo"])
def test_what_is_no_id_removes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "undo").mkdir()
    with pytest.raises(NotFoundError):
        SessionDirectories([tmp_path / "undo"]).erase(name)
    assert (tmp_path / "undo").is_dir()


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / ONE).write_text("x")

    from ollm.domain.errors import StorageError

    with pytest.raises(StorageError) as caught:
        SessionDirectories([tmp_path]).erase(ONE)
    assert caught.value.message == f"Cannot remove {tmp_path / ONE}: Not a directory."


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        ({"a": ONE, "b": TWO}, {"b": TWO}),
        ({"a": {"sessionId": ONE}, "b": {"deep": {"er": TWO}}}, {"b": {"deep": {"er": TWO}}}),
        ({"a": {"deep": {"er": ONE}}, "ü": 5}, {"ü": 5}),
    ],
)
def test_the_map_loses_what_names_the_session(tmp_path: Path, held: dict, kept: dict) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps(held))

    SnapshotMapFile(path).erase(ONE)

    assert path.read_text() == json.dumps(kept, ensure_ascii=False)


@pytest.mark.parametrize("content", [b"nonsense", b"[1]", b'{ "a" : "x" }', b"\xff"])
def test_a_map_that_names_it_nowhere_is_not_written(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "map.json"
    path.write_bytes(content)
    before = path.stat().st_ino

    SnapshotMapFile(path).erase(ONE)
    SnapshotMapFile(tmp_path / "missing").erase(ONE)

    assert (path.read_bytes(), path.stat().st_ino) == (content, before)
    assert not (tmp_path / "missing").exists()


def test_typed_lines_of_the_session_go_and_all_others_stay_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'{"s":"%s","t":"a"}\r\n{"s":"%s"}\nnonsense\xff' % (TWO.encode(), ONE.encode()))

    InputHistoryFile(path).erase(ONE)

    assert path.read_bytes() == b'{"s":"%s","t":"a"}\r\nnonsense\xff' % TWO.encode()
    before = path.stat().st_ino
    InputHistoryFile(path).erase(ONE)
    assert path.stat().st_ino == before
    InputHistoryFile(tmp_path / "missing").erase(ONE)
    assert not (tmp_path / "missing").exists()
