"""Runs the mutants that have a name, each against the test that is said to notice it."""

import sys

from bench.mutants.copies import ROOT, Copy
from bench.mutants.named_list import NAMED, NamedMutant
from bench.mutants.named_weak import WEAK

MAX_SECONDS = 180


def judge_named(words: list[str]) -> int:
    """Print the outcome of each, or of those whose name has one of the words; how many were not noticed."""
    every = [*NAMED, *WEAK]
    chosen = [named for named in every if not words or set(words) & set(named.switched_off.replace(",", "").split())]
    copy = Copy(sorted({named.test.partition("::")[0] for named in chosen}))
    try:
        alive = [named for named in chosen if not is_noticed(named, copy)]
    finally:
        copy.close()
    print(f"{len(chosen) - len(alive)} of {len(chosen)} noticed", file=sys.stderr if alive else sys.stdout)
    return len(alive)


def is_noticed(named: NamedMutant, copy: Copy) -> bool:
    path = ROOT / "src" / "ollm" / named.module
    source = path.read_text(encoding="utf-8")
    assert source.count(named.before) == 1, f"{named.module}: not there once: {named.before}"
    tests = [test for test in copy.tests if test.partition("[")[0] == named.test]
    assert tests, named.test
    copy.write(path.relative_to(ROOT), source.replace(named.before, named.after).encode())
    try:
        line = source[: source.index(named.before)].count("\n") + 1
        failed = copy.run(tests, MAX_SECONDS, path.relative_to(ROOT), line)
    finally:
        copy.write(path.relative_to(ROOT), source.encode())
    passes = bool(failed) and not copy.run([failed], MAX_SECONDS)
    print(f"{'noticed' if passes else 'SURVIVED':8} {named.switched_off} <- {failed}", flush=True)
    return passes
