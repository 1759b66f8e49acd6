"""Opening, replacing and removing files beneath a root, without following a link."""

import os
from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.system.beneath import (
    LinkFound,
    open_directory,
    open_regular,
    remove_file,
    replace_file,
)
from ollm.system.paths import Boundary


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret.txt").write_text("secret")
    return directory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    (directory / "src").mkdir(parents=True)
    (directory / "src" / "main.py").write_text("print()")
    return directory


@pytest.fixture
def boundary(workspace: Path, tmp_path: Path) -> Boundary:
    return Boundary.around(workspace, user_home=tmp_path / "home", ollm_home=tmp_path / "home" / ".ollm")


def kind_of(error: pytest.ExceptionInfo[ToolFailure]) -> str:
    return error.value.kind


def read(boundary: Boundary, path: str) -> bytes:
    with boundary.open_file(path) as file:
        return file.read()


def test_writing_makes_parents_and_leaves_no_temporary_file(boundary: Boundary, workspace: Path) -> None:
    boundary.write_file("a/b/c.txt", b"hello")

    assert (workspace / "a/b/c.txt").read_bytes() == b"hello"
    assert [item.name for item in (workspace / "a/b").iterdir()] == ["c.txt"]


def test_a_name_as_long_as_the_file_system_allows_can_be_written(boundary: Boundary) -> None:
    boundary.write_file("n" * 255, b"x")
    boundary.write_file("n" * 255, b"y")

    assert read(boundary, "n" * 255) == b"y"


def test_mode_owner_and_attributes_survive_a_replacement(boundary: Boundary, workspace: Path) -> None:
    file = workspace / "script.sh"
    file.write_text("old")
    file.chmod(0o4750)
    owner = (1234, 2345) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(file, *owner)
    file.chmod(0o4750)
    os.setxattr(file, "user.note", b"kept")

    boundary.write_file("script.sh", b"new")

    status = file.stat()
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o4750, *owner)
    assert os.getxattr(file, "user.note") == b"kept"


def test_a_hard_link_to_a_file_elsewhere_is_cut_not_written_through(
    boundary: Boundary, workspace: Path, outside: Path
) -> None:
    os.link(outside / "secret.txt", workspace / "twin")

    boundary.write_file("twin", b"mine")

    assert (outside / "secret.txt").read_text() == "secret"


def test_removing_takes_regular_files_only(boundary: Boundary, workspace: Path) -> None:
    boundary.remove_file("src/main.py")

    assert not (workspace / "src/main.py").exists()
    with pytest.raises(ToolFailure) as error:
        boundary.remove_file("src")
    assert kind_of(error) == "IsDirectory"


def test_a_directory_can_be_listed_by_descriptor(boundary: Boundary) -> None:
    with boundary.open_directory("src") as descriptor:
        assert [item.name for item in os.scandir(descriptor)] == ["main.py"]
    with boundary.open_directory(".") as descriptor:
        assert [item.name for item in os.scandir(descriptor)] == ["src"]
    with pytest.raises(ToolFailure), boundary.open_directory("src/main.py"):
        pass


def test_a_file_is_opened_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "file").write_text("x")
    (tmp_path / "link").symlink_to("dir")
    (tmp_path / "dir" / "to-file").symlink_to("file")

    descriptor = open_regular(tmp_path, tmp_path / "dir" / "file")
    assert os.read(descriptor, 9) == b"x"
    os.close(descriptor)
    for path in (tmp_path / "link" / "file", tmp_path / "dir" / "to-file"):
        with pytest.raises(LinkFound):
            open_regular(tmp_path, path)
    with pytest.raises(LinkFound):
        open_directory(tmp_path, tmp_path / "link")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("dir", "IsDirectory", "is a directory, not a file."),
        ("pipe", "NotARegularFile", "is a named pipe, not a regular file."),
        ("socket", "NotARegularFile", "is a socket, not a regular file."),
    ],
)
def test_nothing_but_a_regular_file_is_opened_replaced_or_removed(
    tmp_path: Path, name: str, kind: str, message: str
) -> None:
    import socket

    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    path = tmp_path / name

    for attempt in (
        lambda: open_regular(tmp_path, path),
        lambda: replace_file(tmp_path, path, b"", overwrite=True),
        lambda: remove_file(tmp_path, path),
    ):
        with pytest.raises(ToolFailure) as caught:
            attempt()
        assert (caught.value.kind, caught.value.message) == (kind, f"{path} {message}")
    assert path.exists()


def test_without_overwriting_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("before")

    with pytest.raises(FileExistsError):
        replace_file(tmp_path, tmp_path / "old", b"after", overwrite=False)
    assert (tmp_path / "old").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    replace_file(tmp_path, tmp_path / "a" / "f", b"x", overwrite=True)
    os.close(open_regular(tmp_path, tmp_path / "a" / "f"))
    with pytest.raises(ToolFailure):
        open_regular(tmp_path, tmp_path / "a")
    remove_file(tmp_path, tmp_path / "a" / "f")
    with pytest.raises(FileNotFoundError):
        remove_file(tmp_path, tmp_path / "a" / "f")

    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # what earlier tests left may be freed meanwhile
