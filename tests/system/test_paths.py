"""Paths within a boundary, and files opened beneath a root."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.system.beneath import (
    LinkFound,
    open_directory,
    open_regular,
    remove_file,
    replace_file,
)
from ollm.system.paths import Boundary, resolve_path
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user


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


@covers("T3.8")
@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "../work-evil/x",
        "/etc/passwd",
        "link-file",
        "link-directory/secret.txt",
        "link-directory/new/deep.txt",
        "dangling",
        "chain/secret.txt",
        "src/./../../outside/./secret.txt",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../../x",
    ],
)
def test_a_path_that_leads_out_is_refused_for_reading_and_writing(
    boundary: Boundary, workspace: Path, outside: Path, path: str
) -> None:
    (workspace.parent / "work-evil").mkdir()
    (workspace / "link-file").symlink_to(outside / "secret.txt")
    (workspace / "link-directory").symlink_to(outside)
    (workspace / "dangling").symlink_to(outside / "not-there-yet")
    (workspace / "hop").symlink_to("link-directory")
    (workspace / "chain").symlink_to("hop")

    for attempt in (lambda: boundary.open_file(path), lambda: boundary.write_file(path, b"x")):
        with pytest.raises(ToolFailure) as error:
            attempt()
        assert kind_of(error) == "OutsideWorkspace"
    assert sorted(item.name for item in outside.iterdir()) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret"


@pytest.mark.parametrize("path", ["src/main.py", "./src//main.py", "src/../src/main.py", "link.py", "alias/main.py"])
def test_links_and_dots_that_stay_inside_work(boundary: Boundary, workspace: Path, path: str) -> None:
    (workspace / "link.py").symlink_to("src/main.py")
    (workspace / "alias").symlink_to(workspace / "src")

    assert read(boundary, path) == b"print()"
    assert boundary.write_file(path, b"changed") == workspace / "src" / "main.py"
    assert read(boundary, path) == b"changed"
    assert (workspace / "link.py").is_symlink()


def test_a_workspace_reached_through_a_link_is_one_place(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "door").symlink_to(workspace)

    boundary = Boundary.around(tmp_path / "door")

    assert read(boundary, str(tmp_path / "door" / "src" / "main.py")) == b"print()"
    assert read(boundary, str(workspace / "src" / "main.py")) == b"print()"


def test_an_allowed_root_is_inside(workspace: Path, outside: Path) -> None:
    boundary = Boundary.around(workspace, [outside])

    assert read(boundary, str(outside / "secret.txt")) == b"secret"
    assert boundary.write_file(str(outside / "new.txt"), b"n") == outside / "new.txt"


def test_what_was_approved_can_be_read_and_still_not_written(
    boundary: Boundary, workspace: Path, outside: Path
) -> None:
    approved = boundary.approve_paths([outside / "secret.txt"])

    assert read(approved, "../outside/secret.txt") == b"secret"
    with pytest.raises(ToolFailure) as error:
        approved.write_file("../outside/secret.txt", b"x")
    assert kind_of(error) == "OutsideWorkspace"


def test_an_approval_is_not_stretched_to_another_target(boundary: Boundary, workspace: Path, outside: Path) -> None:
    (outside / "other.txt").write_text("other")
    link = workspace / "link"
    link.symlink_to(outside / "secret.txt")
    approved = boundary.approve_paths([boundary.judge("link").resolved])
    link.unlink()
    link.symlink_to(outside / "other.txt")

    with pytest.raises(ToolFailure):
        approved.open_file("link")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "ValidationError"),
        ("a\0b", "ValidationError"),
        ("\ud800", "ValidationError"),
        ("x" * 300, "ValidationError"),
        ("x/" * 3000, "FileNotFound"),
        ("missing.txt", "FileNotFound"),
        ("missing/deep.txt", "FileNotFound"),
        ("src/main.py/below", "FileNotFound"),
        ("~/secret.txt", "FileNotFound"),
        ("$HOME/secret.txt", "FileNotFound"),
        ("circle", "FileNotFound"),
        ("src", "IsDirectory"),
        (".", "IsDirectory"),
        ("fifo", "NotARegularFile"),
        ("socket", "NotARegularFile"),
    ],
)
def test_what_cannot_be_read_is_named(
    boundary: Boundary, workspace: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    os.mkfifo(workspace / "fifo")
    (workspace / "circle").symlink_to("circle")
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")

        with pytest.raises(ToolFailure) as error:
            boundary.open_file(path)

    assert kind_of(error) == kind
    assert not path or repr(path)[1:-1] in str(error.value) or path in str(error.value)


def test_a_device_inside_an_allowed_root_is_not_opened() -> None:
    boundary = Boundary.around(Path("/dev"))

    for device in ("zero", "null", "tty"):
        with pytest.raises(ToolFailure) as error:
            boundary.open_file(device)
        assert kind_of(error) in ("NotARegularFile", "FileNotFound")


@pytest.mark.parametrize(
    ("path", "kind"),
    [("", "ValidationError"), ("src", "IsDirectory"), (".", "IsDirectory"), ("src/main.py/x", "FileNotFound")],
)
def test_what_cannot_be_written_is_named_and_nothing_changes(
    boundary: Boundary, workspace: Path, path: str, kind: str
) -> None:
    before = sorted(workspace.rglob("*"))

    with pytest.raises(ToolFailure) as error:
        boundary.write_file(path, b"x")

    assert kind_of(error) == kind
    assert sorted(workspace.rglob("*")) == before


def test_without_overwrite_an_existing_file_stands(boundary: Boundary, workspace: Path) -> None:
    with pytest.raises(ToolFailure) as error:
        boundary.write_file("src/main.py", b"x", overwrite=False)

    assert kind_of(error) == "FileExists"
    assert (workspace / "src/main.py").read_text() == "print()"
    boundary.write_file("new.py", b"x", overwrite=False)
    assert (workspace / "new.py").stat().st_nlink == 1


def test_what_the_system_forbids_is_permission_denied() -> None:
    def body(directory: Path) -> None:
        (directory / "closed").mkdir()
        (directory / "closed" / "file").write_text("x")
        (directory / "locked").write_text("x")
        (directory / "locked").chmod(0)
        (directory / "closed").chmod(0)
        boundary = Boundary.around(directory)
        for path in ("closed/file", "locked"):
            with pytest.raises(ToolFailure) as error:
                boundary.open_file(path)
            assert kind_of(error) == "PermissionDenied"
        with pytest.raises(ToolFailure) as error:
            boundary.write_file("closed/new", b"x")
        assert kind_of(error) == "PermissionDenied"

    as_ordinary_user(body)


names = st.sampled_from([".", "..", "a", "b", "link-in", "link-out", "file"])


@covers("T3.8")
@given(parts=st.lists(names, min_size=1, max_size=7))
def test_no_combination_of_parts_gets_out(parts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp() / "tree"
    root = base / "work"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "link-in").symlink_to(root / "a")
        (root / "a" / "link-out").symlink_to(base)
        (root / "a" / "b" / "link-out").symlink_to("../../..")
        (root / "a" / "file").write_text("inside")
        (base / "file").write_text("outside")
    boundary = Boundary.around(root)
    path = "/".join(parts)

    try:
        content = read(boundary, path)
    except ToolFailure:
        return
    assert content == b"inside"
    assert resolve_path(path, root).is_relative_to(root)


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
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o750, *owner)
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


def test_hidden_files_of_a_home_ask_even_if_it_is_the_workspace(tmp_path: Path) -> None:
    def list_protections(workspace: Path, name: str) -> list[str | None]:
        judged = Boundary.around(workspace, user_home=tmp_path, ollm_home=tmp_path / ".ollm").judge(name)
        return [judged.read_protection, judged.write_protection]

    for name in (".netrc", ".aws/credentials", ".config/gh/hosts.yml"):
        assert all(list_protections(tmp_path, name)), name
    assert list_protections(tmp_path, "code/a.txt") == [None, None]
    assert list_protections(tmp_path / ".dotfiles", "a.txt") == [None, None]
    assert all(list_protections(tmp_path / ".ssh", "id_rsa"))
