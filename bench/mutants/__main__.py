"""`make mutants`: a seeded sample of mutants, each run against the tests that reach it; the share that was noticed.

A mutant is one change in a copy of the tree. First the tests are run once over a copy that writes down which of them
come past the place of each mutant, in whichever process. Then each mutant meets those tests, its module's own first and
the quickest next, as many as fit into `--budget` seconds. The first failure kills it.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.mutants.reach import PLUGINS, Reach, find_reach, load_reach, save_reach
from bench.mutants.sites import Mutant, find_mutants, list_modules

ROOT = Path(__file__).parents[2]
PACKAGES = ["services", "policy", "store", "runtime"]
MIN_TIMEOUT_SECONDS = 120
COPIED = ("src", "tests", "bench", "docs", "examples", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def main() -> int:
    options = read_options()
    mutants = choose_mutants(options.packages, options.count, options.seed)
    print(f"{len(mutants)} mutants of {', '.join(options.packages)}, seed {options.seed}", flush=True)
    copies = [make_copy() for _ in range(options.jobs)]
    try:
        reach = get_reach(mutants, copies[0], options)
        outcomes = list(run_all(mutants, copies, reach, options.budget))
    finally:
        for copy in copies:
            shutil.rmtree(copy, ignore_errors=True)
    print_table(outcomes, options.packages)
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--count", type=int, default=400, help="mutants in all, an even share of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests for a mutant")
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], help="files and folders that are run to see what they reach"
    )
    parser.add_argument("--reach", type=Path, help="a file that keeps what the tests reach for the next run")
    return parser.parse_args()


def choose_mutants(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """An even share of each package, drawn by seed; a package alone gives the same ones."""
    chosen: list[Mutant] = []
    for package in packages:
        every = [mutant for path in list_modules(ROOT, [package]) for mutant in find_mutants(path)]
        chosen += random.Random(f"{seed} {package}").sample(every, min(len(every), count // len(packages)))
    return chosen


def make_copy() -> Path:
    copy = Path(tempfile.mkdtemp(prefix="ollm-mutants-"))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    shutil.copy(Path(__file__).with_name("reach_plugin.py"), copy / "src")
    return copy


def describe_environment(copy: Path) -> dict[str, str]:
    """The copy's code before the installed one, and no plugins but those that are named: finding them takes seconds."""
    return {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def get_reach(mutants: list[Mutant], copy: Path, options: argparse.Namespace) -> Reach:
    if options.reach is not None and options.reach.exists():
        return load_reach(options.reach)
    reach = find_reach(mutants, copy, ROOT, options.tests, describe_environment(copy))
    if options.reach is not None:
        save_reach(reach, options.reach)
    return reach


def run_all(
    mutants: list[Mutant], copies: list[Path], reach: Reach, budget_seconds: float
) -> Iterator[tuple[Mutant, str]]:
    free = [Copy(path) for path in copies]

    def run_one(mutant: Mutant) -> tuple[Mutant, str]:
        copy = free.pop()
        try:
            outcome = judge_mutant(mutant, copy, reach, budget_seconds)
        finally:
            free.append(copy)
        where = mutant.path.relative_to(ROOT / "src" / "ollm")
        print(f"{outcome:9} {where}:{mutant.line} {mutant.kind}: {mutant.text[:60]!r}", flush=True)
        return mutant, outcome

    try:
        with ThreadPoolExecutor(len(copies)) as pool:
            yield from pool.map(run_one, mutants)
    finally:
        for copy in free:
            copy.close()


class Copy:
    """A copy of the tree with a process that runs tests in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writes = 0
        self._worker = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))],
            cwd=path,
            env=describe_environment(path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, inner: Path, source: bytes) -> None:
        """Each time with a date of its own, so that no compiled form of another text is taken for it."""
        (self.path / inner).write_bytes(source)
        self._writes += 1
        os.utime(self.path / inner, (self._writes, self._writes))

    def run(self, tests: list[str], seconds: float) -> int:
        arguments = ["-x", "-q", "--no-header", *PLUGINS, *tests]
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps([arguments, seconds]) + "\n")
        self._worker.stdin.flush()
        return int(self._worker.stdout.readline())

    def close(self) -> None:
        self._worker.kill()
        self._worker.wait()


def judge_mutant(mutant: Mutant, copy: Copy, reach: Reach, budget_seconds: float) -> str:
    """`killed`, `survived`, or `unreached` when no test comes past it.

    A table or a default in a module without functions is noted nowhere: it meets the tests of its folder.
    """
    inner = mutant.path.relative_to(ROOT)
    own = find_own_tests(inner)
    past = reach.choose(mutant, own, budget_seconds)
    tests = past or reach.choose_beside(own, budget_seconds)
    if not tests:
        return "unreached"
    source = mutant.path.read_bytes()
    copy.write(inner, mutant.apply(source))
    try:
        code = copy.run(tests, max(MIN_TIMEOUT_SECONDS, 4 * budget_seconds))
    finally:
        copy.write(inner, source)
    return "killed" if code else "survived" if past else "unreached"


def find_own_tests(inner: Path) -> str:
    module = inner.relative_to("src").with_suffix("")
    return str(Path("tests", *module.parts[1:-1], f"test_{module.name}.py"))


def print_table(outcomes: list[tuple[Mutant, str]], packages: list[str]) -> None:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for mutant, outcome in outcomes:
        counts[mutant.path.relative_to(ROOT / "src" / "ollm").parts[0]][outcome] += 1
    print("\n| package | mutants | killed | survived | reached by no test | share killed |\n|---|---|---|---|---|---|")
    for package in packages:
        found = counts[package]
        total = sum(found.values())
        share = f"{100 * found['killed'] / total:.0f} %" if total else "–"
        print(f"| {package} | {total} | {found['killed']} | {found['survived']} | {found['unreached']} | {share} |")


if __name__ == "__main__":
    sys.exit(main())
