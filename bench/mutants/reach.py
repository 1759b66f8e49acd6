"""Which tests reach a mutant: one run of the tests over a copy that writes down who came past its place."""

import ast
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.mutants.sites import Mutant

PLUGINS = ["-pno:cacheprovider", "-preach_plugin", "-ppytest_asyncio.plugin", "-p_hypothesis_pytestplugin"]
NOTES, TIMES = "reached.txt", "times.txt"
NOTE = '__import__("reach_plugin").note({number})\n{indent}'
MAX_RUN_SECONDS = 3600


class Reach(NamedTuple):
    """The tests that reach each mutant, by its name, and the seconds each passing test took."""

    tests: dict[str, list[str]]
    seconds: dict[str, float]

    def choose(self, mutant: Mutant, own: str, budget_seconds: float) -> list[str]:
        """Its module's own tests first, then the quickest, as many as fit into the budget."""
        noted = self.tests.get(name_mutant(mutant), [])
        return self._fit([test for test in noted if test in self.seconds], own, budget_seconds)

    def choose_beside(self, own: str, budget_seconds: float) -> list[str]:
        """For what nothing came past: the tests in the folder of its module's own."""
        folder = own.rpartition("/")[0] + "/"
        return self._fit([test for test in self.seconds if test.startswith(folder)], own, budget_seconds)

    def _fit(self, tests: list[str], own: str, budget_seconds: float) -> list[str]:
        tests.sort(key=lambda test: (not test.startswith(own + "::"), self.seconds[test]))
        chosen, spent = [], 0.0
        for test in tests:
            spent += self.seconds[test]
            if chosen and spent > budget_seconds:
                break
            chosen.append(test)
        return chosen


def name_mutant(mutant: Mutant) -> str:
    return f"{mutant.path.name}:{mutant.line}:{mutant.start}:{mutant.kind}:{'/'.join(mutant.path.parts[-3:-1])}"


def find_reach(mutants: list[Mutant], copy: Path, root: Path, tests: list[str], environment: dict[str, str]) -> Reach:
    """Run `tests` once over a marked copy."""
    mark_copy(mutants, copy, root)
    command = [sys.executable, "-m", "pytest", "-q", *PLUGINS, *tests]
    try:
        subprocess.run(command, cwd=copy, env=environment, timeout=MAX_RUN_SECONDS, check=False)
    finally:
        for path in {mutant.path for mutant in mutants}:
            shutil.copy(path, copy / path.relative_to(root))
    return read_notes(mutants, copy)


def mark_copy(mutants: list[Mutant], copy: Path, root: Path) -> None:
    for path in {mutant.path for mutant in mutants}:
        numbered = [(number, mutant) for number, mutant in enumerate(mutants) if mutant.path == path]
        (copy / path.relative_to(root)).write_bytes(mark_source(path.read_bytes(), numbered))


def mark_source(source: bytes, numbered: list[tuple[int, Mutant]]) -> bytes:
    """A note before each statement that a mutant changes; for one outside of functions, a note in all of them."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    places = list(list_places(ast.parse(source), starts, source))
    marks: dict[int, set[int]] = defaultdict(set)
    for number, mutant in numbered:
        around = [place for place in places if place[0] <= mutant.start < place[1]]
        inner = [max(around)] if around else [place for place in places if place[2]]
        for start, _, _ in inner:
            marks[start].add(number)
    for start in sorted(marks, reverse=True):
        indent = " " * (start - source.rfind(b"\n", 0, start) - 1)
        notes = "".join(NOTE.format(number=number, indent=indent) for number in sorted(marks[start]))
        source = source[:start] + notes.encode() + source[start:]
    return source


def list_places(tree: ast.AST, starts: list[int], source: bytes) -> Iterator[tuple[int, int, bool]]:
    """Start and end of each statement in a function that begins a line, and whether it is the function's first."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for holder in ast.walk(function):
            for block in ("body", "orelse", "finalbody"):
                statements = getattr(holder, block, [])
                for statement in statements if isinstance(statements, list) else []:
                    start = starts[statement.lineno - 1] + statement.col_offset
                    last = starts[(statement.end_lineno or 0) - 1] + (statement.end_col_offset or 0)
                    before = source[starts[statement.lineno - 1] : start]
                    if before.isspace() and not source.startswith((b"elif", b"@"), start):
                        yield start, last, holder is function and statement is statements[0]


def read_notes(mutants: list[Mutant], copy: Path) -> Reach:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for number, test in read_entries(copy / NOTES):
        found[name_mutant(mutants[number])][test] = None
    seconds: dict[str, float] = dict(read_entries(copy / TIMES))
    return Reach({name: list(tests) for name, tests in found.items()}, seconds)


def read_entries(path: Path) -> Iterator[tuple[Any, Any]]:
    """A process that is killed, or has no space by a test's will, may leave a line half written."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError):
            first, second = json.loads(line)
            yield first, second


def save_reach(reach: Reach, path: Path) -> None:
    path.write_text(json.dumps(reach._asdict()), encoding="utf-8")


def load_reach(path: Path) -> Reach:
    return Reach(**json.loads(path.read_text(encoding="utf-8")))
