"""Lines that try to get out, run by effect as an ordinary user: alone against bash, and through the command."""

import signal
from pathlib import Path

import pytest

from ollm.system.sandbox.box import Level
from tests.ordinary_user import as_ordinary_user
from tests.policy.effect_world import EffectWorld
from tests.policy.verdicts import load_sections

LINES = [row.line for row in load_sections()["red team"]]


def lay_traps(world: EffectWorld) -> None:
    """What the lines are about, in the workspace."""
    work = world.workspace
    (work / "names0").write_text(f"{world.key}\0")
    (work / "way").symlink_to(world.key.parent)
    (world.home / ".aws").mkdir()
    (world.home / ".aws/credentials").write_text("[default]\n\tkey = canary-0815\n")
    (work / "creds").symlink_to(world.home / ".aws/credentials")
    (work / "-v").write_text("x\n")
    (work / "prog.awk").write_text(f'BEGIN {{ print "x" > "{world.mark}" }}\n')
    (work / "prog.sed").write_text(f"w {world.mark}\n")
    (work / "mod.jq").write_text('def f: "canary-0815";\n')
    (work / "magic").write_text("0 string x canary-0815\n")
    (work / "shim").mkdir()
    (work / "shim/ls").write_text(f"#!/bin/sh\ntouch {world.mark}\n")
    (work / "shim/ls").chmod(0o755)
    (work / "sub/.git/objects").mkdir(parents=True)
    (work / "sub/.git/refs").mkdir()
    (work / "sub/.git/HEAD").write_text("ref: refs/heads/main\n")
    (work / "sub/.git/config").write_text(f"[core]\n\tfsmonitor = touch {world.mark}\n")
    world.settle()


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_no_line_of_the_red_team_has_an_effect_unasked(level: Level) -> None:
    def body(directory: Path) -> None:
        signal.alarm(300)
        world = EffectWorld(directory, level, boxed=level == "full")
        lay_traps(world)
        allowed = [line for line in map(world.fill, LINES) if world.allows(line)]
        effects = {line: effect for line in allowed if (effect := world.find_effect(line))}
        world.close()
        print(len(LINES), "lines,", len(allowed), "run:", *allowed, sep="\n  ")
        assert effects == {}

    assert len(LINES) > 400
    as_ordinary_user(body)
