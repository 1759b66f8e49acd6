"""`ollm files` on the quick way gives byte for byte what the ordinary way gives, which `--debug` asks for."""

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ollm.cli import quick_list
from ollm.cli.quick_list import parse_file_arguments
from tests.cli.command import SCRIPT, ollm
from tests.cli.forked import finish
from tests.cli.test_files import project
from tests.cli.test_main import imported_by
from tests.services.file_discovery.looking import plant, rules
from tests.services.file_discovery.test_parallel_walk import wide
from tests.services.file_discovery.trees import RandomTree
from tests.sizes import size

HEAVY = {
    "typing",
    "re",
    "pathlib",
    "functools",
    "collections",
    "enum",
    "msgspec",
    "logging",
    "json",
    "asyncio",
    "click",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ((), None, False)),
        (["*.py", "--json", "src"], (("*.py", "src"), None, True)),
        (["--workspace", "/tmp", "a"], (("a",), "/tmp", False)),
    ],
)
def test_an_everyday_line_is_read(words: list[str], expected: tuple[object, ...]) -> None:
    given = parse_file_arguments(words)

    assert given is not None
    assert (given["patterns"], given["workspace"], given["as_json"]) == expected


@pytest.mark.parametrize("words", [["--help"], ["--explain", "a"], ["--workspace"], ["--workspace", "--json"], ["-x"]])
def test_any_other_line_is_left_to_click(words: list[str]) -> None:
    assert parse_file_arguments(words) is None


class BothWays:
    """The command in one project, run on the quick way and on the ordinary one."""

    def __init__(self, root: Path, home: Path, **variables: str) -> None:
        self.root, self.home = root, home
        self._environment = {**os.environ, "OLLM_HOME": str(home), **variables}

    def run(self, *arguments: str) -> tuple[int, bytes, bytes]:
        return finish(("files", *arguments), self.root, self._environment, b"", seconds=120)

    def compare(self, *arguments: str) -> tuple[int, bytes, bytes]:
        quick, ordinary = self.run(*arguments), self.run(*arguments, "--debug")
        assert quick[:2] == ordinary[:2], arguments
        return quick


def test_both_ways_give_the_same_of_hostile_trees(tmp_path: Path) -> None:
    for seed in range(size(5, 300)):
        root = tmp_path / str(seed)
        RandomTree(seed, root).make(second=".ollmignore")
        (root / "link").symlink_to("/etc")
        (root / os.fsdecode(b"not \xff text")).touch()
        (root / "two\nlines").mkdir(exist_ok=True)
        (root / "two\nlines" / 'a"b\\c\u202e.txt').touch()
        os.mkfifo(root / "pipe")
        both = BothWays(root, tmp_path / "home")
        for arguments in ((), ("*.t[xm]?", "deep"), ("**/foo*", "--json")):
            both.compare(*arguments)


def test_both_ways_give_the_same_of_a_large_tree_and_of_trouble_in_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    wide(root, folders=100)
    plant(root, os.fsdecode(b"f70/g1/not \xff text"), "f71/g1/.git/HEAD", "f71/g1/x.log")
    both = BothWays(root, tmp_path / "home")
    for arguments in ((), ("*.py", "f7"), ("--json", "f1*/**")):
        assert both.compare(*arguments)[1].count(b"one.py") >= 4
    rules(root, "f99/g0/.ollmignore", "[x")
    assert b"f99/g0/.ollmignore:1 skipped" in both.compare()[2]


def test_settings_count_as_soon_as_they_are_written(tmp_path: Path) -> None:
    root, home = project(tmp_path / "project"), tmp_path / "home"
    plant(root, "a/b/c/deep.txt")
    (root / "linked").symlink_to("src")
    both = BothWays(root, home)
    home.mkdir()
    usual = both.compare()[1]

    (home / "config.yaml").write_text("fileDiscovery:\n  builtinIgnores: [.github]\n  followSymlinks: true\n")
    for _ in range(3):  # the first reads the settings, the others remember them
        assert b"node_modules/x.js" in both.compare()[1]
    assert (home / "cache" / "walk-settings").is_file()
    (home / "config.yaml").write_text("fileDiscovery:\n  maxDepth: 1\n")
    _, out, err = both.compare()
    assert b"deep.txt" not in out
    assert b"deeper than fileDiscovery.maxDepth" in err
    (home / "config.yaml").write_text("fileDiscovry: {}\n")
    for _ in range(2):
        assert b"fileDiscovry" in both.compare()[2]
    (home / "config.yaml").unlink()
    assert both.compare()[1] == usual


def test_what_is_wrong_is_said_as_before(tmp_path: Path) -> None:
    root, home = project(tmp_path / "project"), tmp_path / "home"
    both = BothWays(root, home)
    home.mkdir()
    (home / "trust.json").write_text("{")
    assert both.compare()[0] == 1
    (home / "trust.json").write_text('{"workspaces": {}}')
    assert [both.compare()[0] for _ in range(2)] == [0, 0]
    (home / "trust.json").write_text('{"workspaces": []}')
    assert both.compare()[0] == 1
    (home / "trust.json").unlink()
    rules(root, ".gitignore", "gen/", "[x")
    assert b".gitignore:2 skipped" in both.compare()[2]
    for wrong in (("{a,b}" * 20,), ("--workspace", "/nowhere"), ("--workspace", "~/nowhere")):
        assert both.compare(*wrong)[0] == 2
    assert BothWays(root, home, OLLM_PROVIDER="nonsense").compare()[0] == 2


@pytest.mark.parametrize("memory", ["", "1", "\0" * 100, "1 0.1.0 config.yaml\n", "x\n" * 5000])
def test_a_damaged_memory_of_the_settings_is_not_used(tmp_path: Path, memory: str) -> None:
    root, home = project(tmp_path / "project"), tmp_path / "home"
    (home / "cache").mkdir(parents=True)
    (home / "config.yaml").write_text("fileDiscovery:\n  builtinIgnores: [.github]\n")
    both = BothWays(root, home)
    both.compare()
    kept = (home / "cache" / "walk-settings").read_text()
    (home / "cache" / "walk-settings").write_text(memory or kept[: len(kept) - 5])

    assert b"node_modules/x.js" in both.compare()[1]


def test_a_workspace_with_settings_of_its_own_is_asked_for_them(tmp_path: Path) -> None:
    root, home = project(tmp_path / "project"), tmp_path / "home"
    plant(root, "own/x")
    (root / ".ollm").mkdir()
    (root / ".ollm" / "config.yaml").write_text("fileDiscovery:\n  builtinIgnores: [own]\n")
    both = BothWays(root, home)
    assert b"own/x" in both.compare()[1]
    assert ollm("trust", home=home, cwd=root).returncode == 0
    assert b"own/x" not in both.compare()[1]


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_terminal_gets_no_name_that_drives_it(tmp_path: Path, arguments: Sequence[str]) -> None:
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    plant(plain, "a.txt", "é/b.txt")
    plant(odd, "a\x1b[31m.txt", "two\nlines")

    for root in (plain, odd):
        shown = [read_terminal(root, tmp_path / "home", *arguments, *more) for more in ((), ("--debug",))]
        assert shown[0] == shown[1]
        assert b"\x1b[31m" not in shown[0]
        assert b"txt" in shown[0]


def read_terminal(root: Path, home: Path, *arguments: str) -> bytes:
    """What the command shows at a terminal."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "ollm", "files", *arguments],
            cwd=root,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OLLM_HOME": str(home)},
            check=True,
        )
        return os.read(ours, 1 << 16)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_list_is_there_before_anything_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are settings, from the second time on."""
    root = project(tmp_path / "project")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("provider:\n  model: some\n")
    monkeypatch.setenv("OLLM_HOME", str(tmp_path / "home"))
    line = f"files --workspace {root}"
    assert {"msgspec", "logging"} <= imported_by(line)
    assert not (HEAVY - {"collections", "functools"}) & imported_by(line)


def test_a_reader_that_goes_away_and_a_full_disk(tmp_path: Path) -> None:
    root = tmp_path / "project"
    plant(root, *(f"a_rather_long_name_to_fill_a_pipe_{number:06}" for number in range(3000)))
    environment = {**os.environ, "OLLM_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    command = subprocess.Popen(
        [SCRIPT, "files"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert command.stdout
    command.stdout.read(10)
    command.stdout.close()
    assert command.stderr
    assert (command.stderr.read(), command.wait()) == (b"", 1)
    command.stderr.close()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [SCRIPT, "files"], cwd=root, stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 2)
    assert b"Cannot write the output" in done.stderr


def test_whatever_fails_is_left_to_the_ordinary_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quick_list, "_read_lines", lambda *_: 1 / 0)

    assert quick_list.print_list_quickly([]) is None
