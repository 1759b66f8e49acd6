"""What policy lets run as only reading is run by a real bash, as an ordinary user, and judged by its effect: nothing
outside is read, no file changes, no mark is made. A small sample in every run, a large one in the soak."""

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
