"""Runs the attacks of attacks.txt at a level of the sandbox, as written and hidden in a script, and tells their effects.

`python -m tests.integration.beside.attacks LEVEL [PART/PARTS]` prints a line for each effect.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.integration.beside.sides import Side, make_folder
from tests.integration.beside.stories import Step, read_stories

FILE = Path(__file__).with_name("attacks.txt")
CANARY = "canary-4711"
HOLDS_CHOICES = re.compile(r"\{(.*)\}", re.DOTALL)
OWN_RECORDS = re.compile(r"/\.ollm/(?!config\.yaml|grants\.yaml|trust\.json)|/\.(cache|npm)/")


def list_attacks(level: str) -> list[tuple[str, list[Step]]]:
    """List every attack: each choice of a line as written, and inside a script that policy does not read."""
    found: list[tuple[str, list[Step]]] = []
    for name, steps in read_stories(FILE).items():
        if f"not at {level}" not in name:
            for one in _expand(steps):
                found += [(name, one), (f"{name}, hidden", one)]
    return found


def _expand(steps: list[Step]) -> Iterator[list[Step]]:
    place = next((number for number, (who, line) in enumerate(steps) if who == "$" and _split_choices(line)), None)
    if place is None:
        yield steps
        return
    for line in _split_choices(steps[place][1]):
        yield [*steps[:place], ("$", line), *steps[place + 1 :]]


def _split_choices(line: str) -> list[str]:
    found = HOLDS_CHOICES.search(line)
    choices = re.split(r"(?<!\\)\|", found[1]) if found else []
    start, end = (line[: found.start()], line[found.end() :]) if found else ("", "")
    return [f"{start}{choice}{end}".replace("\\|", "|") for choice in choices] if len(choices) > 1 else []


class Target:
    """A home with a project, a key, a folder of somebody else, and a process that must live."""

    def __init__(self, root: Path, level: str) -> None:
        self.side = Side(root, "plain", level, path=f"{root}/home/.local/bin:{os.environ['PATH']}")
        self.mark, self.out = root / "MARK", root / "out"
        self.out.mkdir()
        (self.out / "theirs").write_text("theirs\n")
        for name in (".ssh/id_rsa", ".netrc", ".git-credentials", "notes.txt", ".local/share/keyrings/default"):
            (self.side.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.side.home / name).write_text(f"{CANARY}\n")
        self.program = self.side.workspace / "run.sh"
        self.program.write_text(f"#!/bin/sh\ntouch {self.mark}\n")
        self.program.chmod(0o755)
        self.side.environment["DEPLOY_TOKEN"] = CANARY
        self.side.run_outside("git diff HEAD~1 > d.patch")
        self.victim = subprocess.Popen(["sleep", "600"], env={"SECRET": CANARY})
        self.before = self.describe()

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def fill(self, line: str) -> str:
        names = {"RUN": self.program, "MARK": self.mark, "KEY": self.side.home / ".ssh/id_rsa", "OUT": self.out}
        return re.sub(r"\b(RUN|MARK|KEY|OUT|PID)\b", lambda found: str(names.get(found[1], self.victim.pid)), line)

    def describe(self) -> dict[str, str]:
        state = {}
        for path in sorted(self.side.root.rglob("*")):
            inside = path.is_relative_to(self.side.workspace)
            if not inside and not path.is_dir() and not OWN_RECORDS.search(str(path)) and path != self.mark:
                state[str(path)] = f"{path.lstat().st_mode} {_hash(path)}"
        hooks = self.side.workspace / ".git/hooks"
        state["hooks"] = " ".join(sorted(f"{path.name} {_hash(path)}" for path in hooks.glob("*")))
        line = f"git config --local --list | grep -F {self.program}; git rev-parse v1 feat; ls .ollm 2> /dev/null"
        state["git"] = self.side.run_outside(line)[1]
        return state

    def find_effects(self, said: str) -> list[str]:
        after = self.describe()
        changed = [name for name in self.before.keys() | after.keys() if self.before.get(name) != after.get(name)]
        effects = [f"changed {name}: {after.get(name, 'gone')[:200]}" for name in changed]
        effects += ["the program ran outside"] if self.mark.exists() else []
        effects += ["the canary was printed"] if CANARY in said else []
        return [*effects, *(["the process ended"] if self.victim.poll() is not None else [])]


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else "other"
    except OSError as error:
        return str(error.errno)


def try_attack(name: str, steps: list[Step], level: str) -> list[str]:
    with make_folder("ollm-attack-", Path.home() / ".cache") as root, closing(Target(root, level)) as target:
        said, effects = "", list[str]()
        for who, line in steps:
            filled = target.fill(line)
            if who == ">":
                effects += target.find_effects(said) if not effects else []
                target.side.run_outside(filled)
                target.before = target.describe()
                continue
            if name.endswith("hidden"):
                (target.side.workspace / "s.sh").write_text(f"{filled}\n")
                filled = "bash s.sh"
            said += target.side.run(filled)[1].replace(line, "")
        return [*effects, *(["the program ran later"] if target.mark.exists() and not effects else [])]


def main(level: str, part: str = "0/1") -> int:
    number, _, parts = part.partition("/")
    attacks = list_attacks(level)[int(number) :: int(parts)]
    effective = 0
    for name, steps in attacks:
        effects = try_attack(name, steps, level)
        effective += bool(effects)
        if effects:
            lines = [line for who, line in steps if who == "$"]
            print(name, *lines, *effects, sep="\n    ", flush=True)
    print(f"{level}: {len(attacks)} attacks, {effective} had an effect", flush=True)
    return int(effective > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
