"""`make mutants`: a seeded sample of mutants, each run against the tests of its module; the share that was noticed.

A mutant is a copy of the tree with one change. The tests of a module are its mirrored file, the files that import it,
those of its folder, and last the ones that drive the command; with `--mirrored` the mirrored file alone. The first
failure kills the mutant.
"""

import argparse
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

from bench.mutants.sites import Mutant, find_mutants, list_modules

ROOT = Path(__file__).parents[2]
PACKAGES = ["services", "policy", "store", "runtime"]
TIMEOUT_SECONDS = 300
COPIED = ("src", "tests", "bench", "docs", "examples", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
DRIVING = {
    "runtime": ["cli/test_oneshot.py", "cli/test_chat.py", "cli/test_resume.py"],
    "services": ["cli/test_oneshot.py", "cli/sessions", "runtime"],
    "store": ["store", "cli/sessions", "cli/test_resume.py"],
    "policy": ["policy"],
    "tools": ["tools"],
    "providers": ["providers"],
    "system": ["system"],
}


def main() -> int:
    options = read_options()
    mutants = choose_mutants(options.packages, options.count, options.seed)
    print(f"{len(mutants)} mutants of {', '.join(options.packages)}, seed {options.seed}", flush=True)
    copies = [make_copy() for _ in range(options.jobs)]
    try:
        outcomes = list(run_all(mutants, copies, mirrored=options.mirrored))
    finally:
        for copy in copies:
            shutil.rmtree(copy, ignore_errors=True)
    print_table(outcomes, options.packages)
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mirrored", action="store_true", help="run the mirrored test file alone")
    return parser.parse_args()


def choose_mutants(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """An even share of each package, drawn by seed."""
    chance = random.Random(seed)
    chosen: list[Mutant] = []
    for package in packages:
        every = [mutant for path in list_modules(ROOT, [package]) for mutant in find_mutants(path)]
        chosen += chance.sample(every, min(len(every), count // len(packages)))
    return chosen


def make_copy() -> Path:
    copy = Path(tempfile.mkdtemp(prefix="ollm-mutants-"))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    return copy


def run_all(mutants: list[Mutant], copies: list[Path], *, mirrored: bool) -> Iterator[tuple[Mutant, str]]:
    free = list(copies)

    def run_one(mutant: Mutant) -> tuple[Mutant, str]:
        copy = free.pop()
        try:
            outcome = judge_mutant(mutant, copy, mirrored=mirrored)
        finally:
            free.append(copy)
        where = mutant.path.relative_to(ROOT / "src" / "ollm")
        print(f"{outcome:9} {where}:{mutant.line} {mutant.kind}: {mutant.text[:60]!r}", flush=True)
        return mutant, outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from pool.map(run_one, mutants)


def judge_mutant(mutant: Mutant, copy: Path, *, mirrored: bool) -> str:
    """`killed`, `survived`, or `untested` when no test has to do with the module."""
    inner = mutant.path.relative_to(ROOT)
    source = mutant.path.read_bytes()
    files = choose_tests(inner)[: 1 if mirrored else None]
    (copy / inner).write_bytes(mutant.apply(source))
    try:
        return run_tests(files, copy) if files else "untested"
    finally:
        (copy / inner).write_bytes(source)


def choose_tests(inner: Path) -> list[str]:
    """The tests that have most to do with a module first."""
    module = inner.relative_to("src").with_suffix("")
    package = module.parts[1]
    dotted = ".".join(module.parts if module.name != "__init__" else module.parts[:-1])
    mirrored = Path("tests", *module.parts[1:-1], f"test_{module.name}.py")
    tests = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    importing = [path for path in tests if dotted in (ROOT / path).read_text(encoding="utf-8")]
    beside = [path for path in tests if path.parent == mirrored.parent]
    driving = [Path("tests", name) for name in DRIVING.get(package, [])]
    wanted = [path for path in [mirrored, *importing, *beside, *driving] if (ROOT / path).exists()]
    return list(dict.fromkeys(str(path) for path in wanted))


def run_tests(files: list[str], copy: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *files]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "killed"
    return "survived" if done.returncode == 0 else "killed"


def print_table(outcomes: list[tuple[Mutant, str]], packages: list[str]) -> None:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for mutant, outcome in outcomes:
        counts[mutant.path.relative_to(ROOT / "src" / "ollm").parts[0]][outcome] += 1
    print("\n| package | mutants | killed | survived | share killed |\n|---|---|---|---|---|")
    for package in packages:
        found = counts[package]
        total = sum(found.values())
        share = f"{100 * found['killed'] / total:.0f} %" if total else "–"
        print(f"| {package} | {total} | {found['killed']} | {total - found['killed']} | {share} |")


if __name__ == "__main__":
    sys.exit(main())
