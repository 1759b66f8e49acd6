"""T2.8: read_many_files, through dispatch."""

import os
from pathlib import Path

import pytest

from ollm.services.token_counting import estimate_units
from tests.covers import covers
from tests.tools.drive import Driver, content, error


@pytest.fixture
def drive(workspace: Path) -> Driver:
    driver = Driver(workspace)
    for name in ("a.py", "b.py", "sub/c.py"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(f"# {name}\n", encoding="utf-8")
    return driver


@covers("T2.8")
async def test_files_come_under_headers_with_their_paths(drive: Driver) -> None:
    record = await drive("read_many_files", paths=["b.py", "a.py"])

    assert content(record) == "=== b.py ===\n# b.py\n=== a.py ===\n# a.py"


@covers("T2.8")
async def test_globs_and_paths_mix_and_no_file_comes_twice(drive: Driver) -> None:
    shown = content(await drive("read_many_files", paths=["a.py", "**/*.py"]))

    assert [line for line in shown.splitlines() if line.startswith("===")] == [
        "=== a.py ===",
        "=== b.py ===",
        "=== sub/c.py ===",
    ]


async def test_one_string_is_a_list_of_one(drive: Driver) -> None:
    assert content(await drive("read_many_files", path="a.py")) == "=== a.py ===\n# a.py"


@covers("T2.8")
async def test_one_bad_file_does_not_hide_the_others(drive: Driver, workspace: Path) -> None:
    (workspace / "x.bin").write_bytes(b"\0\1\2")
    os.mkfifo(workspace / "pipe")

    shown = content(await drive("read_many_files", paths=["missing", "x.bin", "pipe", "sub", "a.py"]))

    for kind in ("FileNotFound", "BinaryFile", "NotARegularFile", "IsDirectory", "# a.py"):
        assert kind in shown


@covers("T2.8")
@pytest.mark.parametrize("letter", ["word ", "漢字"])
@pytest.mark.parametrize("budget", [50, 300])
async def test_the_token_budget_is_kept_and_what_is_left_out_is_named(
    drive: Driver, workspace: Path, letter: str, budget: int
) -> None:
    for number in range(5):
        (workspace / f"long{number}.txt").write_text((letter * 20 + "\n") * 40, encoding="utf-8")

    shown = content(await drive("read_many_files", paths=["long*.txt"], maxTokens=budget))

    page, _, notes = shown.rpartition("\n[")
    assert estimate_units(page) <= budget + 20
    assert "not shown (too long)" in notes


async def test_a_glob_skips_env_files_and_says_how_many(drive: Driver, workspace: Path) -> None:
    (workspace / ".env").write_text("SECRET=1\n", encoding="utf-8")

    shown = content(await drive("read_many_files", paths=["*"]))

    assert "SECRET" not in shown
    assert "[1 file that may contain secrets (.env and the like) was skipped; name one to read it]" in shown


@pytest.mark.parametrize("inside", [".", "people"])
async def test_a_glob_in_a_workspace_that_holds_the_home_skips_keys_and_our_own_records(
    workspace: Path, inside: str
) -> None:
    home = workspace / inside
    drive = Driver(workspace, home=home)
    for name in (".ssh/id_ed25519", ".ollm/grants.yaml", ".env/token", "notes.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"text of {name}\n", encoding="utf-8")

    shown = content(await drive("read_many_files", paths=["**/*"]))

    assert "text of notes.txt" in shown
    assert shown.count("text of ") == 1
    assert "[3 files that may contain secrets (.env and the like) were skipped; name one to read it]" in shown
    drive.person.approves = False
    assert error(await drive("read_many_files", paths=[f"{inside}/.ssh/id_ed25519"]))[0] == "Denied"


async def test_a_name_with_brackets_that_exists_is_no_glob(drive: Driver, workspace: Path) -> None:
    (workspace / "[id].ts").write_text("page\n", encoding="utf-8")

    assert content(await drive("read_many_files", paths=["[id].ts"])) == "=== [id].ts ===\npage"


async def test_many_files_stay_within_the_output_limit(drive: Driver, workspace: Path) -> None:
    for number in range(50):
        (workspace / f"f{number:02}.txt").write_text("x" * 80 + "\n" * 3 + "y\n" * 100, encoding="utf-8")

    shown = content(await drive("read_many_files", paths=["f*.txt"]))

    assert len(shown) <= 30_000
    assert shown.count("\n") < 1_000
    assert "more files not shown" in shown
