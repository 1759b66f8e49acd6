"""`make mutants`: a seeded sample of mutants, each run against the tests that come past it; the share that was noticed.

A mutant is one change in a copy of the tree. Which tests come past which block of the code is found by one run of the
tests, kept in build/mutants for later runs (`--map` finds it anew). Each mutant meets its module's own tests, those of
its package, then the rest, the quickest first, as many as fit into `--budget` seconds each. The first failure kills it,
when the same test passes without the mutant.
"""

import argparse
import hashlib
import json
import shutil
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path

from bench.mutants.blocks import list_blocks
from bench.mutants.copies import ROOT, describe_environment, make_copy
from bench.mutants.explained import find_reason
from bench.mutants.judge import judge_all, name_outcome
from bench.mutants.named import judge_named
from bench.mutants.reach import Reach, find_reach, join_reach, load_reach, save_reach
from bench.mutants.sites import Mutant, find_mutants, list_modules, parses

PACKAGES = ["services", "policy", "store", "runtime"]
REACH = ROOT / "build" / "mutants" / "reach.json"


def main() -> int:
    options = read_options()
    if options.named is not None:
        return judge_named(options.named)
    reach = get_reach(options)
    for package in options.packages:
        print(count_blocks(reach, package))
    drawn = choose_mutants(options.packages, options.count, options.seed, options.files)
    mutants = [mutant for mutant in drawn if not find_reason(mutant, ROOT)]
    print(f"{len(drawn)} mutants of {', '.join(options.packages)}, seed {options.seed}", flush=True)
    earlier = load_killed(options.reach) if options.again else {}
    known = [mutant for mutant in mutants if name_mutant(mutant) in earlier]
    tried = judge_all([mutant for mutant in mutants if mutant not in known], reach, options.budget, options.jobs)
    killed = {name_mutant(mutant): failed for mutant, failed in tried if name_outcome(failed) == "killed"}
    save_killed({**earlier, **killed}, options.reach)
    outcomes = [(mutant, name_outcome(failed)) for mutant, failed in tried]
    outcomes += [(mutant, "killed") for mutant in known]
    outcomes += [(mutant, "explained") for mutant in drawn if mutant not in mutants]
    print_table(outcomes, options.packages)
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--files", nargs="+", metavar="GLOB", help="of the packages only these, as runtime/resume/*.py")
    parser.add_argument("--count", type=int, default=400, help="mutants in all, an even share of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=20, help="seconds of near tests, and of the rest, for a mutant")
    parser.add_argument("--map", nargs="*", metavar="TESTS", help="find anew what these tests (all of them) come past")
    parser.add_argument("--reach", type=Path, default=REACH, help="the file that keeps what the tests come past")
    parser.add_argument("--again", action="store_true", help="leave out what an earlier run has seen killed")
    parser.add_argument("--named", nargs="*", metavar="WORD", help="the mutants that have a name, one by one")
    return parser.parse_args()


def choose_mutants(packages: list[str], count: int, seed: int, files: list[str] | None = None) -> list[Mutant]:
    """An even share of each package, drawn by seed; a package alone gives the same ones. A module of which `files`
    names none is left out."""
    chosen: list[Mutant] = []
    for package in packages:
        modules = [path for path in list_modules(ROOT, [package]) if is_wanted(path, files)]
        every = [ranked for path in modules for ranked in rank_mutants(path, seed)]
        chosen += islice((mutant for _, mutant in sorted(every) if parses(mutant)), count // len(packages))
    return chosen


def is_wanted(path: Path, files: list[str] | None) -> bool:
    """A `*` stays within a folder."""
    inner = path.relative_to(ROOT / "src" / "ollm")
    return files is None or any(inner.match(glob) for glob in files)


def rank_mutants(path: Path, seed: int) -> list[tuple[bytes, Mutant]]:
    """By lot, which falls the same for a mutant whatever changes elsewhere in the module or beside it."""
    lines, seen = path.read_text(encoding="utf-8").splitlines(), Counter[str]()
    found = []
    for mutant in find_mutants(path):
        name = f"{seed} {path.relative_to(ROOT)} {lines[mutant.line - 1].strip()} {mutant.kind} {mutant.text}"
        seen[name] += 1
        found.append((hashlib.sha256(f"{name} {seen[name]}".encode()).digest(), mutant))
    return found


def get_reach(options: argparse.Namespace) -> Reach:
    known = load_reach(options.reach) if options.reach.exists() else None
    if known is not None and options.map is None:
        return known
    copy = make_copy()
    try:
        reach = find_reach(PACKAGES, copy, ROOT, options.map or ["tests"], describe_environment(copy), options.jobs)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    reach = join_reach(known, reach) if known is not None and options.map else reach
    save_reach(reach, options.reach)
    return reach


def count_blocks(reach: Reach, package: str) -> str:
    """How many blocks of its functions some test comes past, in whichever process."""
    names = [
        f"{path.relative_to(ROOT)} {block.name}"
        for path in list_modules(ROOT, [package])
        for block in list_blocks(path.read_bytes())
    ]
    reached = sum(name in reach.blocks for name in names)
    return f"{package}: tests come past {reached:,} of {len(names):,} blocks ({100 * reached / len(names):.1f} %)"


def name_mutant(mutant: Mutant) -> str:
    """By its module as it is now: another text may be another mutant."""
    text = hashlib.sha256(mutant.path.read_bytes()).hexdigest()[:12]
    return f"{mutant.path.relative_to(ROOT)} {text} {mutant.start} {mutant.kind}"


def load_killed(reach: Path) -> dict[str, str]:
    path = reach.with_name("killed.json")
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def save_killed(killed: dict[str, str], reach: Path) -> None:
    reach.with_name("killed.json").write_text(json.dumps(killed), encoding="utf-8")


def print_table(outcomes: list[tuple[Mutant, str]], packages: list[str]) -> None:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for mutant, outcome in outcomes:
        counts[mutant.path.relative_to(ROOT / "src" / "ollm").parts[0]][outcome] += 1
    print("\n| package | mutants | explained | not tried here | killed | survived | share killed |")
    print("|---|---|---|---|---|---|---|")
    for package in packages:
        found = counts[package]
        judged = found["killed"] + found["survived"]
        share = f"{100 * found['killed'] / judged:.0f} %" if judged else "–"
        numbers = (
            sum(found.values()),
            found["explained"],
            found["not tried"],
            found["killed"],
            found["survived"],
            share,
        )
        print(f"| {package} | {' | '.join(map(str, numbers))} |")


if __name__ == "__main__":
    sys.exit(main())
