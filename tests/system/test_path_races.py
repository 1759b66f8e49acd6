"""Protected and odd names, folders, and paths that change between check and use."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.system import folders
from ollm.system.folders import FolderMemory, read_names
from ollm.system.path_names import SHELL_START_UP_FILES, is_environment_file, normalize_name
from ollm.system.paths import (
    Boundary,
    KnownDirectories,
    explain_read_protection,
    explain_write_protection,
)
from tests.covers import covers
from tests.sizes import size

SWAPPER = """
import os, shutil, sys
name, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    try:
        os.symlink(outside, name + ".link")
        os.rename(name, name + ".real")
        os.rename(name + ".link", name)
        os.unlink(name)
        os.rename(name + ".real", name)
    except OSError:  # a directory was made anew in the gap: away with it
        for left in (name + ".link", name):
            if os.path.islink(left):
                os.unlink(left)
        if os.path.lexists(name + ".real"):
            shutil.rmtree(name, ignore_errors=True)
            if not os.path.lexists(name):
                os.rename(name + ".real", name)
"""


@contextmanager
def swapping(inside: Path, outside: Path) -> Iterator[None]:
    """Another process keeps putting a link to `outside` where `inside` stands, and back."""
    arguments = [sys.executable, "-c", SWAPPER, str(inside), str(outside)]
    swapper = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        yield
        assert swapper.poll() is None, "the race was over before the end"
    finally:
        swapper.kill()
        swapper.communicate()


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "dir").mkdir(parents=True)
    outside.mkdir()
    (work / "dir" / "file").write_text("inside")
    (outside / "file").write_text("secret")
    return work, outside


def read_once(boundary: Boundary) -> bytes:
    try:
        with boundary.open_file("dir/file") as file:
            return file.read()
    except ToolFailure as error:
        return error.kind.encode()


@covers("T3.8")
@pytest.mark.parametrize("swapped", ["dir", "dir/file"])
def test_reading_never_gets_out_while_links_are_swapped(places: tuple[Path, Path], swapped: str) -> None:
    work, outside = places
    boundary = Boundary.around(work)
    outcomes = set()
    with swapping(work / swapped, outside if swapped == "dir" else outside / "file"):
        for _ in range(size(1_000, 100_000)):
            outcomes.add(read_once(boundary))
        deadline = time.monotonic() + 120
        while b"inside" not in outcomes and time.monotonic() < deadline:  # the swapper was halted in its gap
            time.sleep(0.001)
            outcomes.add(read_once(boundary))

    assert b"inside" in outcomes
    assert b"secret" not in outcomes
    assert outcomes <= {b"inside", b"OutsideWorkspace", b"FileNotFound", b"FileChanged"}


@covers("T3.8")
@pytest.mark.parametrize("swapped", ["dir", "dir/file"])
def test_writing_never_gets_out_while_links_are_swapped(places: tuple[Path, Path], swapped: str) -> None:
    work, outside = places
    boundary = Boundary.around(work)
    kinds = set()
    with swapping(work / swapped, outside if swapped == "dir" else outside / "file"):
        for number in range(size(200, 20_000)):
            try:
                boundary.write_file("dir/file" if number % 2 else f"dir/new-{number}", b"written")
            except ToolFailure as error:
                kinds.add(error.kind)

    assert kinds <= {"OutsideWorkspace", "FileNotFound", "FileChanged", "FileExists", "IsDirectory"}
    assert [item.name for item in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "secret"


@covers("T3.8")
def test_removing_never_gets_out_while_links_are_swapped(places: tuple[Path, Path]) -> None:
    work, outside = places
    boundary = Boundary.around(work)
    with swapping(work / "dir", outside):
        for _ in range(size(500, 20_000)):
            try:
                boundary.remove_file("dir/file")
            except ToolFailure:
                continue

    assert (outside / "file").read_text() == "secret"


HOME = Path("/home/me")

PLACES = KnownDirectories(user_home=HOME, ollm_home=HOME / ".ollm", roots=(Path("/work"),))


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git",
        "sub/.GIT/hooks/x",
        ".g\u200bit/config",
        ".git./config",
        ".ollm/config.yaml",
        ".Ollm/commands/x.md",
        ".bashrc",
        ".zshenv",
        "dotfiles/.profile",
        "fish/conf.d/x.fish",
        ".config/fish/config.fish",
        "/home/me/.ssh/authorized_keys",
        "/home/me/.SSH/config",
        "/home/me/.ollm/grants.yaml",
    ],
)
def test_writing_is_protected(path: str) -> None:
    assert explain_write_protection(Path("/work") / path, PLACES)


@pytest.mark.parametrize("name", [".env", ".env.local", ".ENV.production", "deep/down/.env"])
def test_an_environment_file_is_protected_once_it_is_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert explain_write_protection(path, PLACES) is None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert explain_write_protection(path, PLACES)


@pytest.mark.parametrize(
    "path",
    [
        ".gitignore",
        ".github/CODEOWNERS",
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        "AGENTS.md",
        "git/config",
        "env",
        "environment.py",
        "my.env",
        ".editorconfig",
        "src/bashrc",
        "conf.d/site.conf",
        "/home/me/ssh/x",
        ".ollmignore",
        "…",
        "...",
    ],
)
def test_writing_elsewhere_is_not(path: str) -> None:
    assert explain_write_protection(Path("/work") / path, PLACES) is None


@pytest.mark.parametrize(
    ("path", "asks"),
    [
        (".env", True),
        (".Env.Local", True),
        ("a/.env.production", True),
        ("/home/me/.ssh/id_ed25519", True),
        ("/home/me/.ollm/config.yaml", True),
        (".env.example", False),
        (".env.sample", False),
        (".env.local.TEMPLATE", False),
        (".git/config", False),
        (".vscode/settings.json", False),
        (".bashrc", False),
        (".ollm/commands/x.md", False),
    ],
)
def test_reading_asks_for_secrets_only(path: str, asks: bool) -> None:
    assert (explain_read_protection(Path("/work") / path, PLACES) is not None) is asks


def test_a_workspace_inside_the_agents_directory_is_a_workspace() -> None:
    places = KnownDirectories(ollm_home=Path("/data"), roots=(Path("/data/project"),))

    assert explain_write_protection(Path("/data/project/x.py"), places) is None
    assert explain_write_protection(Path("/data/config.yaml"), places)
    assert explain_write_protection(Path("/data/x"), KnownDirectories(ollm_home=Path("/data"), roots=(Path("/data"),)))


def test_a_link_to_a_protected_file_is_protected_and_so_is_a_protected_link(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes").symlink_to(".env")
    (tmp_path / "plain").write_text("x")
    (tmp_path / ".env.link").symlink_to("plain")
    boundary = Boundary.around(tmp_path)

    for path in ("notes", ".env.link"):
        with pytest.raises(ToolFailure) as error:
            boundary.open_file(path)
        assert error.value.kind == "Denied"
        with pytest.raises(ToolFailure):
            boundary.write_file(path, b"")
    with boundary.approve_paths([tmp_path / ".env"]).open_file("notes") as file:
        assert file.read() == b"KEY=1"


@given(st.text(max_size=30))
def test_environment_files_are_told_by_name(rest: str) -> None:
    assert is_environment_file(".env" + rest) or (".env" + rest).rstrip(". ").lower().endswith(
        (".example", ".sample", ".template")
    )
    assert not is_environment_file("x.env" + rest)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("README", "readme"),
        ("a. . ", "a"),
        ("...", "..."),
        ("", ""),
        ("Ünïcode", "ünïcode"),
        (".\u200benv", ".env"),
        (".ｅｎｖ", ".env"),
        (".env\u202e", ".env"),
        ("STRASSE", "strasse"),
        ("straße", "strasse"),
        ("\u200b", "\u200b"),
    ],
)
def test_a_name_as_the_most_forgiving_file_system_compares_it(name: str, plain: str) -> None:
    assert normalize_name(name) == plain


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (".env", True),
        (".ENV.local", True),
        (".envrc", True),
        (".env.example", False),
        (".env.Sample.", False),
        (".env.template", False),
        ("env", False),
        ("my.env", False),
    ],
)
def test_which_names_are_environment_files(name: str, secret: bool) -> None:
    assert is_environment_file(name) is secret


def test_the_files_that_shells_start_with_are_listed_as_they_are_compared() -> None:
    assert {".bashrc", ".zshrc", "config.fish", ".xprofile"} <= SHELL_START_UP_FILES
    assert {normalize_name(name) for name in SHELL_START_UP_FILES} == SHELL_START_UP_FILES


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").touch()
    (tmp_path / "src" / "link").symlink_to("a.py")
    time.sleep(0.03)  # older than a step of the clock
    return tmp_path / "src"


def test_names_stay_as_they_were_at_the_last_look(tree: Path) -> None:
    memory = FolderMemory()
    before = memory.read(str(tree))
    (tree / "b.py").touch()

    assert before == (["a.py"], ["deep"], ["link"], None)
    assert memory.read(str(tree)) is before
    memory.look()
    assert memory.read(str(tree)) == read_names(str(tree)) == (["a.py", "b.py"], ["deep"], ["link"], None)


def test_a_folder_without_a_change_is_not_read_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FolderMemory()
    before = memory.read(str(tree))
    monkeypatch.setattr(folders, "read_names", pytest.fail)
    memory.look()

    assert memory.read(str(tree)) is before


def test_a_forged_time_hides_no_change(tree: Path) -> None:
    memory = FolderMemory()
    memory.read(str(tree))
    old = tree.stat()
    (tree / ".mcp.json").touch()
    os.utime(tree, ns=(old.st_atime_ns, old.st_mtime_ns))
    memory.look()

    assert ".mcp.json" in memory.read(str(tree)).files


def test_what_is_gone_has_no_names_and_may_come_back(tree: Path) -> None:
    memory = FolderMemory()
    memory.read(str(tree / "deep"))
    (tree / "deep").rmdir()
    memory.look()

    assert isinstance(memory.read(str(tree / "deep")).failure, FileNotFoundError)
    (tree / "deep").mkdir()
    assert memory.read(str(tree / "deep")).failure is None
