"""T4.1-4.4: glob, through dispatch."""

import os
from pathlib import Path

import pytest

from tests.covers import covers
from tests.services.file_discovery.looking import plant, rules
from tests.tools.drive import Driver, content, error


@covers("T4.1")
async def test_all_matching_paths_come_sorted_and_from_the_workspace(drive: Driver, workspace: Path) -> None:
    plant(workspace, "b.py", "src/a.py", "src/deep/c.py", "d.txt")

    assert content(await drive("glob", pattern="**/*.py")) == "b.py\nsrc/a.py\nsrc/deep/c.py"
    assert content(await drive("glob", pattern="*.py")) == "b.py"
    assert content(await drive("glob", pattern="*.{py,txt}")) == "b.py\nd.txt"
    assert content(await drive("glob", pattern="deep/*", path="src")) == "src/deep/c.py"
    assert content(await drive("glob", pattern=f"{workspace}/src/*.py")) == "src/a.py"


async def test_a_name_that_is_only_further_down_is_found_and_that_is_said(drive: Driver, workspace: Path) -> None:
    plant(workspace, "src/app/main.py")

    said = content(await drive("glob", pattern="main.py"))

    assert said == "src/app/main.py\n[none directly in .; searched **/main.py]"


@covers("T4.2")
async def test_at_most_max_results_come_and_the_rest_is_counted(drive: Driver, workspace: Path) -> None:
    plant(workspace, *(f"f{number:04}.txt" for number in range(150)))

    some = content(await drive("glob", pattern="*.txt", maxResults=3))
    default = content(await drive("glob", pattern="*.txt"))

    assert some.splitlines() == [
        "f0000.txt",
        "f0001.txt",
        "f0002.txt",
        "[147 more; narrow the pattern or raise maxResults]",
    ]
    assert len(default.splitlines()) == 101


@covers("T4.3", "T4.4")
async def test_hidden_files_come_when_asked_for(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a.yml", ".hidden.yml", ".github/workflows/ci.yml")

    without = content(await drive("glob", pattern="**/*.yml"))
    with_them = content(await drive("glob", pattern="**/*.yml", includeHidden=True))

    assert without == "a.yml\n[2 hidden paths match too; set includeHidden]"
    assert with_them == ".github/workflows/ci.yml\n.hidden.yml\na.yml"


async def test_the_newest_come_first_when_asked_for(drive: Driver, workspace: Path) -> None:
    plant(workspace, "old.py", "new.py", "middle.py")
    for name, time in {"old.py": 1, "middle.py": 2, "new.py": 3}.items():
        os.utime(workspace / name, (time, time))

    assert content(await drive("glob", pattern="*.py", sort="newest")) == "new.py\nmiddle.py\nold.py"


@covers("T4.12", "D766", "D767", "D766", "D767")
async def test_ignored_files_are_left_out_unless_their_directory_is_named(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a.log", "out/b.txt", "c.txt", "node_modules/d.txt", "notes/e.txt")
    rules(workspace, ".gitignore", "*.log", "out/")
    rules(workspace, ".ollmignore", "notes")

    assert content(await drive("glob", pattern="**/*.txt")) == "c.txt"
    assert content(await drive("glob", pattern="**/*", path="out")) == (
        "out/b.txt\n[out is ignored (.gitignore:2 hides it: out/); searched because you named it]"
    )


async def test_nothing_found_is_an_answer(drive: Driver) -> None:
    assert content(await drive("glob", pattern="*.nothing")) == "No files match *.nothing."


async def test_names_cannot_forge_lines(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a\nb.txt", "esc\x1b[31m.txt")
    (workspace / os.fsdecode(b"latin-\xe9.txt")).touch()

    said = content(await drive("glob", pattern="*.txt"))

    assert said == "a␊b.txt\nesc␛[31m.txt\nlatin-�.txt"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "ValidationError"),
        ({"pattern": ""}, "ValidationError"),
        ({"pattern": "*", "maxResults": 0}, "ValidationError"),
        ({"pattern": "*", "maxResults": -1}, "ValidationError"),
        ({"pattern": "*", "sort": "size"}, "ValidationError"),
        ({"pattern": "*", "path": ""}, "ValidationError"),
        ({"pattern": "*", "path": "nul\0"}, "ValidationError"),
        ({"pattern": "*", "path": "file"}, "ValidationError"),
        ({"pattern": "["}, "InvalidPattern"),
        ({"pattern": "a\0b"}, "InvalidPattern"),
        ({"pattern": "../*"}, "InvalidPattern"),
        ({"pattern": "/etc/*"}, "OutsideWorkspace"),
        ({"pattern": "*", "path": "missing"}, "FileNotFound"),
        ({"pattern": "*", "path": "~"}, "FileNotFound"),
        ({"pattern": "*", "path": "pipe"}, "NotARegularFile"),
    ],
)
async def test_wrong_values_are_told(drive: Driver, workspace: Path, arguments, kind: str) -> None:
    plant(workspace, "file")
    os.mkfifo(workspace / "pipe")

    assert error(await drive("glob", **arguments))[0] == kind


@covers("T12.2")
async def test_outside_the_workspace_is_asked_about(drive: Driver, workspace: Path, tmp_path: Path) -> None:
    plant(tmp_path, "elsewhere/x.txt")
    (workspace / "link").symlink_to(tmp_path / "elsewhere")

    assert content(await drive("glob", pattern="*", path=str(tmp_path / "elsewhere"))) == str(
        tmp_path / "elsewhere/x.txt"
    )
    assert content(await drive("glob", pattern="**/*")) == f"link -> {tmp_path / 'elsewhere'}"
    assert content(await drive("glob", pattern="link/*")) == "No files match link/*."
    assert len(drive.person.asked) == 1
    drive.person.approves = False
    assert error(await drive("glob", pattern="*", path="link"))[0] == "Denied"
