"""Whether a mutant is noticed: the tests that come past it, nearest first, until one fails that passes without it."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from bench.mutants.blocks import find_given_name, is_called_at_load, list_blocks
from bench.mutants.copies import ROOT, Copy, WorkerGoneError
from bench.mutants.reach import Reach
from bench.mutants.sites import Mutant
from bench.mutants.worker import DIED, NOT_RUN

UNKNOWN_TEST_SECONDS = 1.0
SPARE_SECONDS = 30
TIMES_USUAL = 3
MAX_WORKERS = 2  # that one mutant may cost


class Judge:
    """Chooses the tests for each mutant and remembers which tests can be relied on."""

    def __init__(self, reach: Reach, budget_seconds: float) -> None:
        self._reach = reach
        self._budget_seconds = budget_seconds
        self._reliable: dict[str, bool] = {}

    def list_files(self, mutants: Iterable[Mutant]) -> list[str]:
        """The test files that may be needed."""
        tests = {test for mutant in mutants for test in self.choose(mutant, [])}
        own = {str(find_own_tests(mutant.path)) for mutant in mutants}
        files = {test.partition("::")[0] for test in tests} | own
        return sorted(file for file in files if (ROOT / file).exists())

    def choose(self, mutant: Mutant, collected: list[str]) -> list[str]:
        """Its module's own tests, those of its package, the rest; the quickest first, as many as fit into the budget.
        Tests of its own file that nobody has timed yet come first: they may be new. A value with a name meets all of
        that file: a test may read it past every block."""
        own, known = f"{find_own_tests(mutant.path)}::", set(collected)
        new = [test for test in collected if test.startswith(own) and test not in self._reach.seconds]
        past = [test for test in self._reach.list_past(mutant, ROOT) if not collected or test in known]
        folder = own.split("/")[1]
        near = [test for test in past if test.startswith((own, f"tests/{folder}/"))]
        if find_given_name(mutant.path.read_bytes(), mutant.start):
            timed = self._reach.seconds
            near = list(
                {**dict.fromkeys(near), **dict.fromkeys(t for t in collected if t.startswith(own) and t in timed)}
            )
        near.sort(key=lambda test: (not test.startswith(own), self._reach.seconds[test]))
        if not near:
            near = sorted((test for test in collected if test.startswith(own)), key=self._count_seconds)
        far = sorted(set(past).difference(near), key=self._count_seconds)
        return [*new, *self._fit(near), *self._fit(far)]

    def judge(self, mutant: Mutant, copy: Copy) -> str:
        """The test that noticed it, or nothing. A worker that ends is started again, once."""
        for _ in range(MAX_WORKERS):
            try:
                return self._judge(mutant, copy)
            except WorkerGoneError:
                copy.start_again()
        return DIED

    def _judge(self, mutant: Mutant, copy: Copy) -> str:
        inner = mutant.path.relative_to(ROOT)
        source = (copy.path / inner).read_bytes()  # as it was when the copy was made
        while True:
            tests = [test for test in self.choose(mutant, copy.tests) if self._reliable.get(test, True)]
            copy.write(inner, mutant.apply(source))
            try:
                failed = self._run(mutant, copy, tests, inner, source)
            finally:
                copy.write(inner, source)
            if failed not in tests or self._is_reliable(failed, copy):
                return failed

    def _run(self, mutant: Mutant, copy: Copy, tests: list[str], inner: Path, source: bytes) -> str:
        if not tests:
            return ""
        seconds = SPARE_SECONDS + TIMES_USUAL * sum(self._count_seconds(test) for test in tests)
        inside = any(block.start <= mutant.start < block.end for block in list_blocks(source))
        if inside and not is_called_at_load(source, mutant.start):
            return copy.run(tests, seconds, inner, mutant.line)
        return copy.run_anew(tests, seconds)

    def _is_reliable(self, test: str, copy: Copy) -> bool:
        """Whether it passes where nothing is broken."""
        if test not in self._reliable:
            self._reliable[test] = not copy.run([test], SPARE_SECONDS + TIMES_USUAL * self._count_seconds(test))
        return self._reliable[test]

    def _fit(self, tests: list[str]) -> list[str]:
        chosen, spent = [], 0.0
        for test in tests:
            spent += self._count_seconds(test)
            if chosen and spent > self._budget_seconds:
                break
            chosen.append(test)
        return chosen

    def _count_seconds(self, test: str) -> float:
        return self._reach.seconds.get(test, UNKNOWN_TEST_SECONDS)


def find_own_tests(path: Path) -> Path:
    """By its name; what a package holds itself is tested under the package's."""
    inner = path.relative_to(ROOT / "src" / "ollm")
    name = inner.parent.name if inner.stem == "__init__" else inner.stem
    return Path("tests", *inner.parts[:-1], f"test_{name}.py")


def judge_all(mutants: list[Mutant], reach: Reach, budget_seconds: float, jobs: int) -> list[tuple[Mutant, str]]:
    """Each with the test that noticed it; those that live meet three times as many tests once more."""
    patient = Judge(reach, 3 * budget_seconds)
    files = patient.list_files(mutants) if mutants else []
    if not files:
        return [(mutant, "") for mutant in mutants]
    with ThreadPoolExecutor(jobs) as pool:
        copies = list(pool.map(Copy, [files] * jobs))
    try:
        tried = judge_once(mutants, Judge(reach, budget_seconds), copies)
        more = judge_once([mutant for mutant, failed in tried if not failed], patient, copies)
    finally:
        for copy in copies:
            copy.close()
    return [*((mutant, failed) for mutant, failed in tried if failed), *more]


def judge_once(mutants: list[Mutant], judge: Judge, copies: list[Copy]) -> list[tuple[Mutant, str]]:
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def judge_one(mutant: Mutant) -> tuple[Mutant, str]:
        copy = free.get()
        try:
            failed = judge.judge(mutant, copy)
        finally:
            free.put(copy)
        outcome = name_outcome(failed)
        print(f"{outcome:9} {describe(mutant)} {failed and '<- ' + failed[-90:]}", flush=True)
        return mutant, failed

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(judge_one, mutants))


def name_outcome(failed: str) -> str:
    """A mutant that only tests notice which need what is not here was not tried."""
    return "not tried" if failed == NOT_RUN else "killed" if failed else "survived"


def describe(mutant: Mutant) -> str:
    where = mutant.path.relative_to(ROOT / "src" / "ollm")
    return f"{where}:{mutant.line} {mutant.kind}: {mutant.text[:60]!r}"
