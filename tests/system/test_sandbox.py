"""What boxed commands can do and cannot, judged by what was changed, read, reached or ended outside."""

import os
import tempfile
from pathlib import Path

import pytest

from ollm.system.sandbox.box import Kind, Level
from tests.ordinary_user import as_ordinary_user
from tests.sizes import size
from tests.system.box_escapes import READING, WORKING
from tests.system.box_world import World

LEVELS: tuple[Level, ...] = ("full", "landlock")
ATTEMPTS: dict[Kind, dict[str, str]] = {"reading": READING, "working": WORKING}


def attempt_all(root: Path, level: Level) -> None:
    world = World(root, level)
    broken = []
    try:
        for kind, lines in ATTEMPTS.items():
            for name, line in lines.items():
                output = world.run(line, kind)
                broken += [f"{kind}: {name}: {fault}" for fault in world.judge(output, kind)]
    finally:
        world.close()
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("level", LEVELS)
def test_no_way_out_as_an_ordinary_user(level: Level) -> None:
    as_ordinary_user(lambda root: attempt_all(root, level))


@pytest.mark.skipif(os.geteuid() != 0, reason="this is about root")
@pytest.mark.parametrize("level", LEVELS[: size(1, 2)])
def test_no_way_out_as_root(level: Level) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="ollm-box-") as root:
        attempt_all(Path(root), level)
