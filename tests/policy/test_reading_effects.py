"""Lines that run unasked, by their effect."""

import os
import random
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ollm.system.sandbox.box import Level
from tests.ordinary_user import as_ordinary_user
from tests.policy.effect_lines import list_option_lines, make_quote_lines, make_value_lines
from tests.policy.effect_world import EffectWorld
from tests.policy.verdicts import load_sections
from tests.sizes import size

MODES: list[tuple[Level, bool]] = [("full", True), ("landlock", True), ("landlock", False)]

IDS = ["boxed", "boxed by landlock", "not boxed"]

SECONDS = size(300, 3000)


def run_sample(level: Level, boxed: bool, lines: Iterable[str], count: int) -> Callable[[Path], None]:
    def body(directory: Path) -> None:
        signal.alarm(SECONDS)
        world = EffectWorld(directory, level, boxed=boxed)
        every = list(lines)
        chosen = random.Random(os.environ.get("OLLM_SEED", "1")).sample(every, min(count, len(every)))
        allowed = [line for line in map(world.fill, chosen) if world.allows(line)]
        effects = [f"{line}: {effect}" for line in allowed if (effect := world.find_effect(line))]
        world.close()
        if report := os.environ.get("OLLM_FUZZ_REPORT"):
            with Path(report).open("a") as file:
                file.write(f"{level} {boxed}: {len(every)} lines, {len(chosen)} judged, {len(allowed)} run\n")
        assert effects == []
        assert allowed

    return body


@pytest.mark.parametrize(("level", "boxed"), MODES, ids=IDS)
def test_no_option_of_a_reading_program_has_an_effect_unasked(level: Level, boxed: bool) -> None:
    as_ordinary_user(run_sample(level, boxed, list_option_lines(), size(40, 20_000)))


@pytest.mark.parametrize(("level", "boxed"), MODES, ids=IDS)
def test_no_value_that_bash_evaluates_runs_unasked(level: Level, boxed: bool) -> None:
    as_ordinary_user(run_sample(level, boxed, make_value_lines(), size(40, 20_000)))


def test_no_command_hides_between_quotes() -> None:
    lines = make_quote_lines(random.Random(os.environ.get("OLLM_SEED", "1")), size(60, 30_000))
    as_ordinary_user(run_sample("landlock", False, lines, 10**9))


def test_the_judge_of_effects_sees_them() -> None:
    def body(directory: Path) -> None:
        world = EffectWorld(directory, "full", boxed=False)
        assert world.find_effect(f"cat {world.key}").startswith("it read the key")
        assert world.find_effect(f"md5sum {world.key}").startswith("it read the key")
        assert world.find_effect("ls -lL link").startswith("it read the key")
        assert world.find_effect("echo $(( $(cat payload) ))") == "it changed mark"
        assert world.find_effect("echo x > new") == "it changed workspace/new"
        assert world.find_effect("cat a") == ""
        world.close()

    as_ordinary_user(body)


def test_the_box_holds_what_a_mistake_would_let_run() -> None:
    def body(directory: Path) -> None:
        world = EffectWorld(directory, "full", boxed=True)
        for line in ("cat KEY link", "echo $(( $(cat payload) ))", "echo x > new", "touch OUT/new", "md5sum KEY"):
            assert world.find_effect(world.fill(line)) == "", line
        world.close()

    as_ordinary_user(body)


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
