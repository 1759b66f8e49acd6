"""T4.9-4.11: ls, through dispatch."""

from pathlib import Path

import pytest

from ollm.tools.ls import format_size
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.looking import plant, rules
from tests.tools.drive import Driver, content, error


@covers("T4.9")
async def test_a_directory_is_listed_with_sizes_directories_first(drive: Driver, workspace: Path) -> None:
    plant(workspace, "b.txt", "src/a.py", "src/deep/c.py", ".hidden")
    (workspace / "empty").mkdir()
    (workspace / "big.bin").write_bytes(bytes(1_500_000))

    assert content(await drive("ls")) == "empty/  (empty)\nsrc/  (2 inside)\nb.txt  5 B\nbig.bin  1.4 MB"
    assert ".hidden  5 B" in content(await drive("ls", includeHidden=True))


@covers("T4.10", "T4.11")
async def test_a_tree_goes_as_deep_as_it_is_told(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a/b/c/d/e.txt", "a/x.txt", "a/b/y.txt")

    assert content(await drive("ls", recursive=True, maxDepth=1)) == "a/\n  b/  (2 inside)\n  x.txt  5 B"
    assert content(await drive("ls", recursive=True)) == (
        "a/\n  b/\n    c/\n      d/  (1 inside)\n    y.txt  5 B\n  x.txt  5 B"
    )


@covers("T4.12")
async def test_ignored_names_are_left_out(drive: Driver, workspace: Path) -> None:
    plant(workspace, "kept.txt", "node_modules/x", "a.log", "secret/plan")
    rules(workspace, ".gitignore", "*.log")
    rules(workspace, ".ollmignore", "secret")

    assert content(await drive("ls", recursive=True)) == "kept.txt  5 B"


async def test_a_big_directory_is_folded(drive: Driver, workspace: Path) -> None:
    for number in range(1_500):
        (workspace / f"f{number:05}").touch()

    lines = content(await drive("ls")).splitlines()

    assert len(lines) == 201
    assert lines[-1] == "… 1,300 more"


async def test_a_file_is_listed_as_itself(drive: Driver, workspace: Path) -> None:
    plant(workspace, "src/a.py")

    assert content(await drive("ls", path="src/a.py")) == "src/a.py  5 B"


async def test_an_empty_directory_says_so(drive: Driver) -> None:
    assert content(await drive("ls")) == "(empty)"


def test_a_directory_that_may_not_be_read_is_marked() -> None:
    def body(home: Path) -> None:
        import asyncio

        workspace = home / "workspace"
        plant(workspace, "open/a", "shut/b")
        (workspace / "shut").chmod(0)

        async def look() -> str:
            return content(await Driver(workspace)("ls", recursive=True))

        assert asyncio.run(look()) == "open/\n  a  5 B\nshut/  (cannot be read)"

    as_ordinary_user(body)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"path": "missing"}, "FileNotFound"),
        ({"path": ""}, "ValidationError"),
        ({"recursive": True, "maxDepth": 0}, "ValidationError"),
        ({"recursive": True, "maxDepth": -2}, "ValidationError"),
        ({"path": "a/b.txt/c"}, "FileNotFound"),
    ],
)
async def test_wrong_values_are_told(drive: Driver, workspace: Path, arguments, kind: str) -> None:
    plant(workspace, "a/b.txt")

    assert error(await drive("ls", **arguments))[0] == kind


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (10_239, "10 KB"), (5 << 20, "5.0 MB"), (3 << 40, "3.0 TB")],
)
def test_sizes_are_short(size: int, words: str) -> None:
    assert format_size(size) == words


async def test_symbolic_links_are_listed_with_their_targets_and_not_followed(
    drive: Driver, workspace: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "elsewhere/secret.txt")
    plant(workspace, "src/a.py")
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    (workspace / "src" / "again").symlink_to("a.py")
    (workspace / "gone").symlink_to("nowhere")
    (workspace / "hidden").symlink_to("src")
    rules(workspace, ".gitignore", "hidden")

    shown = content(await drive("ls", recursive=True)).splitlines()

    assert shown == ["src/", "  a.py  5 B", "  again -> a.py", "gone -> nowhere", f"out -> {tmp_path / 'elsewhere'}"]
