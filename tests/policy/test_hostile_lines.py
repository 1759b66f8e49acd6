"""Hostile lines at each level of the box, and ordinary ones, of which no more may ask than before there was a box."""

from pathlib import Path

import pytest

from ollm.policy.shell.verdict import ShellJudge
from ollm.system.paths import Boundary
from ollm.system.sandbox.box import LEVELS, Level
from tests.policy.conftest import Place
from tests.policy.hostile_lines import PROGRAMS, VALUES
from tests.policy.ordinary_lines import ORDINARY

FILES = [
    "pl",
    "payload",
    "list",
    "list0",
    "mod.jq",
    "quoted",
    "format",
    "tests-v",
    ".env.local",
    "bare/HEAD",
    "bare/config",
]
ASKED_BEFORE = 1  # of the ordinary lines, at the time when every table of options was written by hand


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("hostile").resolve())
    workspace, home, out = place.workspace, place.home, place.workspace.parent / "out"
    for directory in (out, workspace / "sub/.git", workspace / "bare/objects", workspace / "bare/refs"):
        directory.mkdir(parents=True)
    for name in FILES:
        (workspace / name).write_text("x\n")
    (home / ".ssh/id_rsa").write_text("the key\n")
    (workspace / "sub-out").symlink_to(out / "p")
    (workspace / "ln-key").symlink_to(home / ".ssh/id_rsa")
    (workspace / "ln-dir").symlink_to(home / ".ssh")
    (workspace / "dir-out").mkdir()
    (workspace / "dir-out/a").symlink_to(home / ".ssh/id_rsa")
    return place


def judge(boundary: Boundary, rules: object, level: Level) -> ShellJudge:
    return ShellJudge(rules, boundary, trusted=True, find_level=lambda: level)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lines", [VALUES, PROGRAMS], ids=["values", "programs"])
def test_no_hostile_line_runs_unasked(world: Place, lines: str, level: Level) -> None:
    places = {
        "KEYDIR": world.home / ".ssh",
        "KEY2": world.home / ".profile",
        "KEY": world.home / ".ssh/id_rsa",
        "OUT": world.workspace.parent / "out",
        "⏎": "\n",
    }
    shell = judge(world.boundary, world.engine().rules, level)

    allowed = []
    for line in lines.splitlines():
        command = line
        for mark, path in places.items():
            command = command.replace(mark, str(path))
        judged = shell.judge({"command": command}, (), "ask")
        if judged.verdict.decision == "allow":
            allowed.append(line)
    assert allowed == []


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_ordinary_reading_lines_ask_no_more_often_than_before(level: Level, tmp_path: Path) -> None:
    tidy = Place(tmp_path.resolve())
    for name in (".env", "out", "src/link-out", "src/dir-out"):
        (tidy.workspace / name).unlink()
    shell = judge(tidy.boundary, tidy.engine().rules, level)

    asked = [line for line in ORDINARY if shell.judge({"command": line}, (), "ask").verdict.decision != "allow"]
    assert len(ORDINARY) >= 200
    assert len(asked) <= ASKED_BEFORE, asked


@pytest.mark.parametrize("command", ["ls --newest", "cat -Q a", "git log --frobnicate", "find . -frob", "sort --zap a"])
def test_an_unknown_option_asks_where_the_kernel_does_not_hold_it(place: Place, command: str) -> None:
    decisions = {
        level: judge(place.boundary, place.engine().rules, level)
        .judge({"command": command}, (), "ask")
        .verdict.decision
        for level in LEVELS
    }
    assert decisions == {"full": "allow", "bubblewrap": "allow", "landlock": "ask", "none": "ask"}
