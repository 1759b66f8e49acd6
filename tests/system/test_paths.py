"""The boundary: what is inside, what is protected, and what opening refuses."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
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
