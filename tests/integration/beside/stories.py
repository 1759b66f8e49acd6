"""Runs the stories of stories.txt outside and at a level of the sandbox, and tells what ended differently.

`python -m tests.integration.beside.stories LEVEL [PART/PARTS] [WORDS OF A NAME]` prints a line for each difference.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.integration.beside.sides import Side, compare, make_folder

FILE = Path(__file__).with_name("stories.txt")
Step = tuple[str, str]


def read_stories(file: Path = FILE) -> dict[str, list[Step]]:
    """Read the steps of each story: who acts, and the line."""
    stories: dict[str, list[Step]] = {}
    for row in file.read_text(encoding="utf-8").splitlines():
        if row.startswith("== "):
            steps = stories.setdefault(row[3:], [])
        elif row and not row.startswith("#"):
            steps.append((row[0], row[2:].replace("⏎", "\n")))
    return stories


def play(side: Side, steps: list[Step]) -> list[tuple[str, int, str]]:
    """Run the steps. Return the agent's lines with their exit codes and what they said."""
    done: list[tuple[str, int, str]] = []
    with ThreadPoolExecutor(8) as pool:
        running = []
        for number, (who, line) in enumerate(steps):
            if who in "&|":
                running.append((line, pool.submit(side.run, line)))
                if who == "&" or (steps[number + 1 : number + 2] and steps[number + 1][0] == "|"):
                    continue
            if who == ">":
                side.run_outside(line)
                continue
            done += [(one, *future.result()) for one, future in running]
            running = []
            if who == "$":
                done.append((line, *side.run(line)))
        done += [(one, *future.result()) for one, future in running]
    return done


def find_differences(name: str, steps: list[Step], level: str) -> list[str]:
    place = name.partition(":")[0]
    parent = None if place == "tmp" else Path.home() / ".cache"
    with make_folder("ollm-beside-", parent) as root:
        sides = [Side(root / one, place, kind) for one, kind in (("a", "outside"), ("b", level))]
        played = [play(side, steps) for side in sides]
        found = [
            f"exit {other} in the box, {code} outside: {line}\n      {' / '.join(said.splitlines()[-4:])}"
            for (line, code, _), (_, other, said) in zip(*played, strict=True)
            if other != code
        ]
        return [*found, *compare(*(side.describe() for side in sides))]


def main(level: str, part: str = "0/1", wanted: str = "") -> int:
    number, _, parts = part.partition("/")
    stories = [
        (name, steps) for name, steps in read_stories().items() if wanted in name and f"not at {level}" not in name
    ][int(number) :: int(parts)]
    different = 0
    for name, steps in stories:
        found = find_differences(name, steps, level)
        different += bool(found)
        if found:
            print(f"{name}\n    " + "\n    ".join(found), flush=True)
    lines = sum(who != ">" for _, steps in stories for who, _ in steps)
    print(f"{level}: {len(stories)} stories, {lines} lines, {different} stories end differently", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
