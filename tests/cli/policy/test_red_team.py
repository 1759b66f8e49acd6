"""The red team's lines through the command: what it allows unasked is run, at every level of the box, and has no effect."""

import asyncio
import json
import signal
import tempfile
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.test_sandbox import use_level
from tests.ordinary_user import as_ordinary_user
from tests.policy.effect_world import EffectWorld
from tests.policy.test_reading_effects import LINES, lay_traps
from tests.servers.answers import Answer
from tests.sizes import size

ASKED_EVERY = size(250, 4)  # of the lines that ask, one in so many is run as well
SECONDS = size(300, 3000)
CALLS_PER_TURN = 6


def set_level(world: EffectWorld, level: str) -> None:
    """The level as the command would have found it, or none by setting."""
    home = world.home / ".ollm"
    (home / "config.yaml").write_text(json.dumps({"sandbox": {"mode": "off"}} if level == "none" else {}))
    use_level(home, level)


def run_command(world: EffectWorld, *arguments: str, stdin: str = "") -> str:
    done = ollm(*arguments, home=world.home / ".ollm", cwd=world.workspace, stdin=stdin, HOME=str(world.home))
    return done.stdout + done.stderr


@pytest.mark.parametrize("level", ["full", "landlock", "none"][: size(1, 3)])
def test_no_line_has_an_effect_through_the_shell_tool(level: str) -> None:
    def body(directory: Path) -> None:
        signal.alarm(SECONDS)
        world = EffectWorld(directory, "full", boxed=False)
        lay_traps(world)
        set_level(world, level)
        lines = [world.fill(line) for line in LINES]
        asked = "\n".join(json.dumps({"id": number, "params": {"command": line}}) for number, line in enumerate(lines))
        verdicts = [
            json.loads(one)
            for one in run_command(world, "policy", "check", "shell", "--batch", stdin=asked).splitlines()
        ]
        allowed = [lines[one["id"]] for one in verdicts if one["decision"] == "allow"]
        others = [line for line in lines if line not in allowed]
        world.age_key()
        for line in (*allowed, *others[::ASKED_EVERY]):
            said = run_command(world, "tools", "run", "shell", "--args", json.dumps({"command": line}), "--json")
            assert world.find_trace(said.replace(line, "").encode()) == "", line
        world.close()
        assert len(verdicts) == len(lines)
        assert len(allowed) < 12, allowed

    as_ordinary_user(body, starts_command=True)


@pytest.mark.parametrize("level", ["full", "landlock"][: size(1, 2)])
def test_no_line_has_an_effect_in_a_conversation_that_may_only_read(level: str) -> None:
    chosen = LINES[:: size(75, 2)]
    turns = [chosen[start : start + CALLS_PER_TURN] for start in range(0, len(chosen), CALLS_PER_TURN)]

    def body(directory: Path) -> None:
        signal.alarm(SECONDS)
        world = EffectWorld(directory, "full", boxed=False)
        lay_traps(world)
        set_level(world, level)
        world.age_key()
        for turn in turns:
            said = asyncio.run(converse(world, [world.fill(line) for line in turn]))
            assert world.find_trace(said) == "", turn
        world.close()

    as_ordinary_user(body, starts_command=True)


async def converse(world: EffectWorld, lines: list[str]) -> bytes:
    """What the calls of one turn gave, without what they were asked."""
    script = [Answer(calls=[("shell", {"command": line}) for line in lines]), "done"]
    place = world.root.parent / "runner"
    place.mkdir(exist_ok=True)
    async with running(Path(tempfile.mkdtemp(dir=place)), script) as runner:
        runner.home, runner.workspace = world.home / ".ollm", world.workspace
        done = await runner.run("-p", "go", "--approval", "read-only", "-o", "json", HOME=str(world.home))
    calls = json.loads(done.out)["toolCalls"]
    assert len(calls) == len(lines), done.err
    said = json.dumps([call.get("result") for call in calls])
    for line in lines:
        said = said.replace(json.dumps(line)[1:-1], "")
    return said.encode()
