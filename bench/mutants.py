"""`make mutants`: break one place at a time in a copy of the last commit and see whether a test fails.

The places are drawn by seed and changed by cosmic-ray; the tests of the package run first, then those that run the
command. `--named` applies the changes of mutants.toml instead, each against its own test.
"""

import argparse
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = Path(__file__).with_suffix(".toml")
COSMIC_RAY = (str(ROOT / ".venv/bin/uv"), "--no-progress", "tool", "run", "-q", "--from", "cosmic-ray==8.7.0")
PACKAGES = ("services", "policy", "store", "runtime")
COMMAND_TESTS = "tests/cli"
TEST_SECONDS = 600
MAX_UNRELIABLE_TESTS = 5
OPERATORS = re.compile(
    r"core/(AddNot|Replace(TrueWithFalse|FalseWithTrue|AndWithOr|OrWithAnd|BreakWithContinue)|NumberReplacer"
    r"|ReplaceComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_FloorDiv)|ReplaceUnaryOperator_Delete_Not|ZeroIterationForLoop)"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--named", nargs="*", metavar="WORD", help="the changes of mutants.toml that hold these words")
    parser.add_argument("--test-change", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.test_change:
        return test_change(Path.cwd())
    if options.named is not None:
        return judge_named(" ".join(options.named))
    modules = draw_modules(options.packages, options.count, options.seed)
    with ThreadPoolExecutor(options.jobs) as pool:
        shares = pool.map(judge_share, [modules[job :: options.jobs] for job in range(options.jobs)])
        outcomes = Counter(outcome for share in shares for outcome in share)
    print(f"seed {options.seed}: {outcomes['KILLED']} of {outcomes.total()} noticed, {outcomes['SURVIVED']} survived")
    return 0


@contextmanager
def clone_tree() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="ollm-mutants-"))
    try:
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(place / "tree")], check=True)
        yield place / "tree"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_tests(tree: Path, tests: Sequence[str], *more: str) -> tuple[bool, str]:
    """Run tests in a tree. Returns whether all passed, and the first that failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--no-header", *more, *tests]
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, timeout=TEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)  # an id may hold blanks
    return done.returncode == 0, failed[1] if failed else ""


def draw_modules(packages: Sequence[str], count: int, seed: int) -> list[tuple[str, int]]:
    """Draw modules in proportion to their lines, each with a seed for the place in it."""
    paths = sorted(path for package in packages for path in (ROOT / "src/ollm" / package).rglob("*.py"))
    lottery = random.Random(seed)
    drawn = lottery.choices(paths, [len(path.read_text(encoding="utf-8").splitlines()) for path in paths], k=count)
    return [(str(path.relative_to(ROOT)), lottery.randrange(1 << 30)) for path in drawn]


def judge_share(modules: Sequence[tuple[str, int]]) -> list[str]:
    with clone_tree() as tree:
        return [outcome for module, seed in modules for outcome in judge_module(tree, module, seed)]


def judge_module(tree: Path, module: str, seed: int) -> list[str]:
    """Let cosmic-ray list the mutants of a module, keep one of them, and run it."""
    config, session = tree.parent / "cosmic-ray.toml", tree.parent / "session.sqlite"
    config.write_text(
        f'[cosmic-ray]\nmodule-path = ["{module}"]\ntimeout = {3.0 * TEST_SECONDS}\nexcluded-modules = []\n'
        f'test-command = "{sys.executable} {__file__} --test-change"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    session.unlink(missing_ok=True)
    subprocess.run([*COSMIC_RAY, "cosmic-ray", "init", config, session], cwd=tree, check=True)
    with sqlite3.connect(session) as data:
        found = data.execute(
            "SELECT start_pos_row, start_pos_col, operator_name, job_id FROM mutation_specs"
        ).fetchall()
        usable = sorted(row for row in found if OPERATORS.fullmatch(row[2]))
        if not usable:
            return []
        row, _, operator, job = random.Random(seed).choice(usable)
        for table in ("mutation_specs", "work_items"):
            data.execute(f"DELETE FROM {table} WHERE job_id != ?", (job,))
    subprocess.run([*COSMIC_RAY, "cosmic-ray", "exec", config, session], cwd=tree, check=True)
    with sqlite3.connect(session) as data:
        outcome, output = data.execute("SELECT test_outcome, output FROM work_results").fetchone()
    print(f"{outcome:9} {module}:{row} {operator} <- {output.strip().splitlines()[-1:]}", flush=True)
    return [outcome]


def test_change(tree: Path) -> int:
    """Run the tests for the file that differs from the commit, nearest first. Exits 1 if one fails twice with the
    change and passes without it."""
    changed = run_git(tree, "diff", "--name-only").strip()
    folder = Path("tests", *Path(changed).parts[2:-1])
    while not (tree / folder).is_dir() or not list((tree / folder).rglob("test_*.py")):
        folder = folder.parent
    for tests in dict.fromkeys((str(folder), COMMAND_TESTS)):
        unreliable: list[str] = []
        while len(unreliable) < MAX_UNRELIABLE_TESTS:
            passed, failed = run_tests(tree, [tests], *(f"--deselect={test}" for test in unreliable))
            if passed:
                break
            if not failed or (passes_unchanged(tree, changed, failed) and not run_tests(tree, [failed])[0]):
                print(failed or f"{tests} did not run to the end")
                return 1
            unreliable.append(failed)
    return 0


def passes_unchanged(tree: Path, changed: str, test: str) -> bool:
    path = tree / changed
    text = path.read_text(encoding="utf-8")
    path.write_text(run_git(tree, "show", f"HEAD:{changed}"), encoding="utf-8")
    try:
        return run_tests(tree, [test])[0]
    finally:
        path.write_text(text, encoding="utf-8")


def run_git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree, capture_output=True, text=True, check=True).stdout


def judge_named(words: str) -> int:
    mutants = [each for each in read_named() if words in str(each)]
    with clone_tree() as tree:
        judge = NamedJudge(tree)
        noticed = sum(judge.is_noticed(**mutant) for mutant in mutants)
    print(f"{noticed} of {len(mutants)} noticed")
    return 0 if noticed == len(mutants) else 1


def read_named() -> list[dict[str, str]]:
    found: list[dict[str, str]] = tomllib.loads(NAMED.read_text(encoding="utf-8"))["mutants"]
    return found


class NamedJudge:
    """Applies changes to a tree, each against its own test. A moved module or test stays known by its text."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._source = {path: path.read_text(encoding="utf-8") for path in (tree / "src/ollm").rglob("*.py")}
        self._tests = {
            name: f"{path.relative_to(tree)}::{name}"
            for path in sorted((tree / "tests").rglob("test_*.py"))
            for name in re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
        }
        self._reliable: dict[str, bool] = {}

    def find_places(self, before: str, test: str, file: str = "") -> tuple[Path, str]:
        """Find the one file that holds the text once, and the id of the test."""
        counts = {path: text.count(before) for path, text in self._source.items() if str(path).endswith(file)}
        found = [path for path, count in counts.items() if count]
        if len(found) != 1 or counts[found[0]] != 1 or test not in self._tests:
            raise LookupError(f"{before!r} in {found}, {self._tests.get(test, 'no test')}")
        return found[0], self._tests[test]

    def is_noticed(self, what: str, before: str, after: str, test: str, file: str = "") -> bool:
        """The test must fail with the change and pass without it."""
        try:
            path, test_id = self.find_places(before, test, file)
        except LookupError as error:
            print(f"LOST     {what}: {error}", flush=True)
            return False
        path.write_text(self._source[path].replace(before, after), encoding="utf-8")
        noticed = not run_tests(self._tree, [test_id])[0]
        path.write_text(self._source[path], encoding="utf-8")
        if noticed and test_id not in self._reliable:
            self._reliable[test_id] = run_tests(self._tree, [test_id])[0]
        noticed = noticed and self._reliable[test_id]
        print(f"{'noticed' if noticed else 'SURVIVED'} {what} <- {test_id}", flush=True)
        return noticed


if __name__ == "__main__":
    sys.exit(main())
