"""What policy lets run as only reading is run by a real bash and judged by its effect.

Every option of every reading program on this machine with operands of many shapes, and values that bash evaluates, made
from a grammar: nothing outside is read, no file changes, no mark is made. A sample in every run, all of it in the soak.
"""

import itertools
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.policy.shell.programs import PROGRAMS
from ollm.policy.shell.verdict import ShellJudge
from tests.policy.conftest import Place
from tests.sizes import size

CANARY = "canary-0815"
BUILTINS = frozenset({"echo", "printf", "test", "[", "type", "command", "cd", "pwd", ":", "true", "false"})
SHAPES = (
    "{p} {o} a", "{p} {o} KEY", "{p} {o} KEY a", "{p} {o} a KEY", "{p} a KEY {o}", "{p} {o} a OUT/new", "{p} {o} a new",
    "{p} {o}=KEY a", "{p} {o}KEY a", "{p} {o}=OUT/new a", "{p} {o}OUT/new a", "{p} {o} -- KEY", "{p} a {o}", "{p} {o}",
    "{p} {o} x KEY", "{p} {o} 1 KEY", "{p} {o} link", "{p} {o} '*' KEY", "{p} {o} @KEY", "{p} {o} . dir",
)  # fmt: skip
SOURCES = (
    '"$(cat payload)"',
    "$(cat payload)",
    "'a[$(touch MARK)]'",
    "1 2",
    "*",
    "$(ls)",
    "{1..3}",
    "1 $(cat payload)",
    "-v",
)
VALUES = ("x", "$x", '"$x"', "x+1", "${x}", "$(cat payload)", "1", "${#x}", "x[0]", "_", "$_", "x=1", "${x:-1}", "'x'")
CONTEXTS = (
    "echo $(({v}))", "(({v}))", "echo ${HOME:{v}:1}", "echo ${HOME:0:{v}}", "echo ${BASH_VERSINFO[{v}]}", "echo $[{v}]",
    "[[ {v} -eq 1 ]]", "[[ 1 -lt {v} ]]", "[[ -v {v} ]]", "test -v {v}", "[ -v {v} ]", "[ {v} -gt 1 ]", "echo ${!x}",
    "for ((i={v};i<2;i++)); do :; done", "for ((i=0;i<{v};i++)); do break; done", "printf '%d' {v}", "printf {v} x",
    "test {v}", "test {v} {v}", "[ {v} ]", "cat <<< $(({v}))", "echo {{1..{v}}}", "echo ${BASH_VERSINFO[@]:{v}}",
    "[[ {v} == 1 ]]", "case {v} in 1) ;; esac", "echo {v}", ": ${BASH_VERSINFO[{v}]:-$(({v}))}", "[[ -n {v} ]]",
)  # fmt: skip


class EffectWorld:
    """A place in which any change and any look outside shows."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        self.root, self.out = root, root / "out"
        self.mark, self.key = root / "mark", self.place.home / ".ssh" / "id_rsa"
        self.out.mkdir()
        workspace = self.place.workspace
        for name in (".env", "out", "src/link-out", "src/dir-out"):
            (workspace / name).unlink()
        self.key.write_text(f"{CANARY}\n")
        (workspace / "dir").mkdir()
        (workspace / "dir/link").symlink_to(self.key)
        (workspace / "link").symlink_to(self.key)
        (workspace / "payload").write_text(f"a[$(touch {self.mark})]\n")
        (workspace / "package.json").write_text("{}\n")
        self.judge = ShellJudge(
            self.place.engine().rules, self.place.boundary, trusted=False, find_level=lambda: "landlock"
        )

    def fill(self, line: str) -> str:
        return line.replace("KEY", str(self.key)).replace("OUT", str(self.out)).replace("MARK", str(self.mark))

    def allows(self, line: str) -> bool:
        return self.judge.judge({"command": line}, (), "ask").verdict.decision == "allow"

    def find_effect(self, line: str) -> str:
        before = self._list_files()
        try:
            done = subprocess.run(
                ["bash", "-c", line], cwd=self.place.workspace, env={"PATH": os.defpath, "HOME": str(self.place.home)},
                stdin=subprocess.DEVNULL, capture_output=True, timeout=2, check=False,
            )  # fmt: skip
            said = done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"") + (late.stderr or b"")
        if CANARY.encode() in said:
            return "it read the key"
        return "" if self._list_files() == before else "it changed a file"

    def _list_files(self) -> dict[str, tuple[int, int]]:
        found = (Path(folder) / name for folder, _, names in os.walk(self.root) for name in names)
        return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


@pytest.fixture
def world(tmp_path: Path) -> EffectWorld:
    return EffectWorld(tmp_path.resolve())


def list_options(program: str) -> list[str]:
    """The options that a program tells of itself, and those of its record."""
    known = PROGRAMS[program].options
    letters = [f"-{letter}" for letter in (known.flags or "") + known.values + known.joined]
    longs = [f"--{name}" for name in (*known.known, *known.long_values, *known.optional)]
    told: list[str] = []
    if program not in BUILTINS:
        done = subprocess.run(
            [program, "--help"], capture_output=True, timeout=5, check=False, stdin=subprocess.DEVNULL
        )
        told = re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", (done.stdout + done.stderr).decode("utf-8", "replace"))
    return list(dict.fromkeys([*letters, *longs, *told, "-é", "--nobody-knows"]))


def make_option_lines() -> Iterator[str]:
    for program in sorted(PROGRAMS):
        if program in BUILTINS or shutil.which(program):
            for option, shape in itertools.product(list_options(program), SHAPES):
                yield shape.format(p=program, o=option)


def make_value_lines() -> Iterator[str]:
    for source, context, value in itertools.product(SOURCES, CONTEXTS, VALUES):
        line = context.replace("{v}", value).replace("{{", "{").replace("}}", "}")
        yield f"for x in {source}; do {line}; done"
        yield f"for x in 1 2; do for x in {source}; do :; done; {line}; done"


def run_sample(world: EffectWorld, lines: list[str], count: int) -> tuple[int, list[str]]:
    chosen = random.Random(os.environ.get("OLLM_SEED")).sample(lines, min(count, len(lines)))
    allowed = [line for line in map(world.fill, chosen) if world.allows(line)]
    return len(allowed), [f"{line}: {effect}" for line in allowed if (effect := world.find_effect(line))]


def test_no_option_of_a_reading_program_has_an_effect_unasked(world: EffectWorld) -> None:
    lines = list(make_option_lines())
    allowed, effects = run_sample(world, lines, size(400, len(lines)))

    assert effects == []
    assert allowed > 10


def test_no_value_that_bash_evaluates_runs_unasked(world: EffectWorld) -> None:
    lines = list(make_value_lines())
    allowed, effects = run_sample(world, lines, size(300, len(lines)))

    assert effects == []
    assert allowed > 5


def test_the_judge_of_effects_sees_them(world: EffectWorld) -> None:
    assert world.find_effect(f"cat {world.key}") == "it read the key"
    assert world.find_effect("echo $(( $(cat payload) ))") == "it changed a file"
    assert world.find_effect("echo x > new") == "it changed a file"
    assert world.find_effect("cat a") == ""
