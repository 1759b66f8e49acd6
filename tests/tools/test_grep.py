"""T4.5-4.8: grep, through dispatch."""

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import plant, rules
from tests.tools.drive import Driver, content, error


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".", 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@covers("T4.5")
async def test_every_matching_line_comes_with_its_path_and_number(drive: Driver, workspace: Path) -> None:
    write(workspace, a_py="import os\nx = 1\n", src__b_py="y\nimport sys\nimport re\n", c_txt="nothing")

    assert content(await drive("grep", pattern="^import")) == (
        "a.py:1:import os\nsrc/b.py:2:import sys\nsrc/b.py:3:import re"
    )
    assert content(await drive("grep", pattern="import", path="src")).startswith("src/b.py:2:")
    assert content(await drive("grep", pattern="sys", path="src/b.py")) == "src/b.py:2:import sys"


@covers("T4.6", "T4.7")
async def test_case_counts_unless_told_otherwise(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="Word\nword\nÄrger\närger\n")

    assert content(await drive("grep", pattern="word", caseSensitive=True)) == "a.txt:2:word"
    assert content(await drive("grep", pattern="word", caseSensitive=False)) == "a.txt:1:Word\na.txt:2:word"
    assert content(await drive("grep", pattern="ÄRGER", caseSensitive=False)) == "a.txt:3:Ärger\na.txt:4:ärger"


@covers("T4.8")
async def test_only_files_like_the_pattern_or_of_the_type_are_searched(drive: Driver, workspace: Path) -> None:
    write(workspace, a_py="x\n", b_ts="x\n", src__c_py="x\n", src__d_md="x\n")

    assert content(await drive("grep", pattern="x", filePattern="*.py")) == "a.py:1:x\nsrc/c.py:1:x"
    assert content(await drive("grep", pattern="x", filePattern="src/**")) == "src/c.py:1:x\nsrc/d.md:1:x"
    assert content(await drive("grep", pattern="x", filePattern="*.{ts,md}")) == "b.ts:1:x\nsrc/d.md:1:x"
    assert content(await drive("grep", pattern="x", fileType="py")) == "a.py:1:x\nsrc/c.py:1:x"
    assert content(await drive("grep", pattern="x", fileType="py", filePattern="src/**")) == "src/c.py:1:x"


async def test_lines_around_a_match_are_shown(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="1\n2\nhit\n4\n5\n6\n7\nhit\n", b_txt="hit\n")

    assert content(await drive("grep", pattern="hit", contextLines=1)) == (
        "a.txt-2-2\na.txt:3:hit\na.txt-4-4\n--\na.txt-7-7\na.txt:8:hit\n--\nb.txt:1:hit"
    )


async def test_a_match_may_span_lines(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="def f(\n    x,\n):\n")

    assert (
        content(await drive("grep", pattern=r"f\(.*\)", multiline=True)) == "a.txt:1:def f(\na.txt:2:    x,\na.txt:3:):"
    )
    assert content(await drive("grep", pattern="(\n    x", literal=True)) == "a.txt:1:def f(\na.txt:2:    x,"


async def test_literal_text_is_no_expression(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="a.b\naxb\n(\n")

    assert content(await drive("grep", pattern="a.b", literal=True)) == "a.txt:1:a.b"
    assert content(await drive("grep", pattern="(", literal=True)) == "a.txt:3:("
    assert content(await drive("grep", pattern="-b", literal=True)).startswith("No match for '-b' in 1 file")


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("compute_total.*def.*", " Try a shorter pattern, such as compute_total."),
        (r"\bload_all\b", " Try a shorter pattern, such as load_all."),
        ("load_all", ""),
        (r"a\.b", ""),
    ],
)
async def test_where_nothing_matches_a_plainer_pattern_is_named(
    drive: Driver, workspace: Path, pattern: str, hint: str
) -> None:
    write(workspace, a_txt="x\n")

    assert content(await drive("grep", pattern=pattern)) == f"No match for {pattern!r} in 1 file.{hint}"


async def test_files_or_counts_may_be_enough(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="x x\nx\n", b_txt="y\n", c_txt="x\n")

    assert content(await drive("grep", pattern="x", output="files")) == "a.txt\nc.txt"
    assert content(await drive("grep", pattern="x", output="counts")) == "a.txt: 3\nc.txt: 1"
    assert content(await drive("grep", pattern="x", output="files", maxResults=1)) == (
        "a.txt\n[2 files; 1 more file, narrow the search or raise maxResults]"
    )


async def test_at_most_max_results_come_and_all_are_counted(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="x\n" * 250, b_txt="x\n")

    lines = content(await drive("grep", pattern="x")).splitlines()

    assert len(lines) == 101
    assert lines[-1] == "[251 matches in 2 files, the first 100 shown; narrow the search or raise maxResults]"


async def test_counting_ends_somewhere(drive: Driver, workspace: Path) -> None:
    write(workspace, a_txt="x\n" * 200_000)

    assert "at least 10,000 matches" in content(await drive("grep", pattern="x", maxResults=1))


@pytest.mark.parametrize(
    ("pattern", "mark"),
    [
        ("foo(bar", "unclosed group"),
        ("a{2,1}", "a{2,1}"),
        (r"x\p{Foo}", "\\p{Foo}"),
        ("[z-a]", "^^^"),
    ],
)
async def test_a_bad_expression_is_told_where_and_offered_as_text(
    drive: Driver, workspace: Path, pattern, mark
) -> None:
    write(workspace, a_txt="foo(bar\n")

    kind, message = error(await drive("grep", pattern=pattern))

    assert kind == "InvalidPattern"
    assert mark in message
    assert "literal" in message


@covers("T4.12", "D766", "D767")
async def test_ignored_files_are_not_searched_unless_named(drive: Driver, workspace: Path) -> None:
    write(workspace, a_log="x\n", out__b_txt="x\n", c_txt="x\n", node__modules__d_js="x\n", notes__e_txt="x\n")
    rules(workspace, ".gitignore", "*.log", "out/")
    rules(workspace, ".ollmignore", "notes", "node")

    assert content(await drive("grep", pattern="x")) == "c.txt:1:x"
    assert content(await drive("grep", pattern="x", path="a.log")) == (
        "a.log:1:x\n[a.log is ignored (.gitignore:1 hides it: *.log); searched because you named it]"
    )


async def test_env_files_are_skipped_and_counted_but_not_their_examples(drive: Driver, workspace: Path) -> None:
    for name in (".env", ".env.local", "deploy/.ENV.production", ".env.example", "app.env"):
        plant(workspace, name)

    said = content(await drive("grep", pattern="text", output="files"))

    assert said == (
        ".env.example\napp.env\n"
        "[3 files that may contain secrets (.env and the like) were skipped; name one to read it]"
    )
    drive.person.approves = False
    assert error(await drive("grep", pattern="text", path=".env"))[0] == "Denied"


@pytest.mark.parametrize("inside", [".", "people"])
async def test_a_workspace_that_holds_the_home_is_searched_without_keys_and_our_own_records(
    workspace: Path, inside: str
) -> None:
    drive = Driver(workspace, home=workspace / inside)
    plant(workspace / inside, ".ssh/id_ed25519", ".SSH/config", ".ollm/sessions/x.json", "notes.txt", ".sshrc")

    said = content(await drive("grep", pattern="text", output="files"))

    prefix = "" if inside == "." else f"{inside}/"
    assert said.splitlines() == [
        f"{prefix}notes.txt",
        "[4 files that may contain secrets (.env and the like) were skipped; name one to read it]",
    ]
    drive.person.approves = False
    assert error(await drive("grep", pattern="text", path=f"{prefix}.ssh"))[0] == "Denied"


async def test_a_line_of_ten_megabytes_is_cut_around_the_match(drive: Driver, workspace: Path) -> None:
    (workspace / "long.txt").write_text("a" * 10_000_000 + "needle" + "b" * 1000 + "\n")

    said = content(await drive("grep", pattern="needle"))

    assert "needle" in said
    assert len(said) < 700


async def test_what_is_not_text_is_named_and_not_shown(drive: Driver, workspace: Path) -> None:
    (workspace / "data.bin").write_bytes(b"\x00\x01needle\x02\n")
    (workspace / "latin.txt").write_bytes("caf\xe9 needle\n".encode("latin-1"))
    (workspace / "wide.txt").write_bytes("ein needle\n".encode("utf-16"))

    assert content(await drive("grep", pattern="needle")) == (
        "latin.txt:1:caf� needle\nwide.txt:1:ein needle\n[data.bin is not text but matches]"
    )


async def test_odd_names_and_special_files_do_no_harm(drive: Driver, workspace: Path, tmp_path: Path) -> None:
    plant(workspace, "-e", "--version", "a\nb", "with space")
    (workspace / os.fsdecode(b"\xff")).write_text("text\n")
    plant(tmp_path, "outside.txt")
    (workspace / "link").symlink_to(tmp_path / "outside.txt")
    (workspace / "loop").symlink_to("loop")
    os.mkfifo(workspace / "pipe")

    said = content(await drive("grep", pattern="text"))

    assert said.splitlines() == ["--version:1:text", "-e:1:text", r"a\x0ab:1:text", "with space:1:text", r"\xff:1:text"]


async def test_more_names_than_a_command_line_takes_are_searched(drive: Driver, workspace: Path) -> None:
    for number in range(6000):
        (workspace / f"{'long' * 45}{number:05}").touch()
    (workspace / "zz").write_text("needle\n")

    assert content(await drive("grep", pattern="needle")) == "zz:1:needle"


async def test_a_search_that_is_cancelled_leaves_no_process(drive: Driver, workspace: Path) -> None:
    (workspace / "big").write_bytes(b"ab" * 50_000_000)
    task = asyncio.create_task(drive("grep", pattern=r"(?:[ab]{3}|\w{5,90}){2,80}\d"))
    while not searching():
        await asyncio.sleep(0.01)

    task.cancel()
    await asyncio.wait([task], timeout=5)

    assert task.done()
    assert not searching()


def searching() -> list[psutil.Process]:
    """The ripgreps that this process has started and that still run."""
    return [child for child in psutil.Process().children() if child.name() == "rg"]


async def test_an_unknown_type_gets_the_nearest_names(drive: Driver) -> None:
    assert "did you mean" in error(await drive("grep", pattern="x", fileType="pythn"))[1]


async def test_whole_directories_and_those_with_files_left_out_are_searched_alike(
    drive: Driver, workspace: Path
) -> None:
    plant(workspace, "top.txt", "whole/a.txt", "whole/below/b.txt", "part/c.txt", "part/d.log", "secret/e.txt")
    plant(workspace, "secret/.env", "-dash/f.txt", "logs/g.log")
    for path in [found for found in workspace.rglob("*") if found.is_file()]:
        path.write_text("needle\n", encoding="utf-8")
    rules(workspace, ".gitignore", "*.log")

    searched = ["-dash/f.txt", "part/c.txt", "secret/e.txt", "top.txt", "whole/a.txt", "whole/below/b.txt"]
    skipped = "[1 file that may contain secrets (.env and the like) was skipped; name one to read it]"
    lines = content(await drive("grep", pattern="needle")).splitlines()
    assert lines == [*(f"{path}:1:needle" for path in searched), skipped]
    assert content(await drive("grep", pattern="needle", output="files")).splitlines() == [*searched, skipped]
    counts = content(await drive("grep", pattern="needle", output="counts")).splitlines()
    assert counts == [*(f"{path}: 1" for path in searched), skipped]


async def test_files_behind_links_that_are_followed_are_searched(drive: Driver, workspace: Path) -> None:
    plant(workspace, "real/a.txt")
    (workspace / "real" / "a.txt").write_text("needle\n", encoding="utf-8")
    (workspace / "linked.txt").symlink_to("real/a.txt")
    drive.services.discovery = FileDiscoveryService(FileDiscoverySettings(follow_symlinks=True), workspace / "home")

    assert content(await drive("grep", pattern="needle")) == "linked.txt:1:needle\nreal/a.txt:1:needle"
