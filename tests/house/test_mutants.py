"""The mutation runner: it breaks what can be broken, and finds the tests that should notice."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench.mutants.__main__ import choose_mutants
from bench.mutants.blocks import find_holders, is_called_at_load, list_blocks, mark_source
from bench.mutants.copies import ROOT, Copy, WorkerGoneError, describe_environment, find_failed
from bench.mutants.explained import EXPLAINED, find_reason
from bench.mutants.judge import Judge, find_own_tests, judge_once
from bench.mutants.named_list import NAMED
from bench.mutants.named_weak import WEAK
from bench.mutants.reach import PLUGINS, Reach, read_notes
from bench.mutants.sites import Mutant, find_mutants
from bench.mutants.worker import DIED

from tests.sizes import SOAK

SOURCE = '''"""Says whether a number is small."""

LIMIT_COUNT = 3


def is_small(number: int, *, quiet: bool = True) -> bool:
    """A docstring with 4 numbers stays."""
    if number < LIMIT_COUNT and quiet:
        print("small")
        return True
    return False
'''


def test_every_place_that_matters_is_broken_once_and_texts_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(SOURCE, encoding="utf-8")

    found = find_mutants(path)

    assert [(mutant.line, mutant.kind) for mutant in found] == [
        (3, "constant"),
        (6, "constant"),
        (8, "condition"),
        (8, "and/or"),
        (8, "comparison"),
        (9, "call removed"),
        (10, "constant"),
        (11, "constant"),
    ]
    assert b"number <= LIMIT_COUNT" in found[4].apply(path.read_bytes())


def test_beside_a_large_bound_a_comparison_is_turned_and_beside_a_small_one_moved_by_one(tmp_path: Path) -> None:
    path = tmp_path / "bounds.py"
    path.write_text("MANY = 1 << 20\nFEW = 3\nfound = [1 > MANY, FEW >= 2]\n", encoding="utf-8")

    assert [mutant.text for mutant in find_mutants(path) if mutant.kind == "comparison"] == ["(1 <= MANY)", "(FEW > 2)"]


def test_beside_a_large_bound_of_another_module_and_beside_a_clock_a_comparison_is_turned(tmp_path: Path) -> None:
    (tmp_path / "bounds.py").write_text("MANY = 1 << 20\nFEW = 3\n", encoding="utf-8")
    path = tmp_path / "user.py"
    path.write_text(
        "from bounds import FEW, MANY as SO_MANY\nfound = [1 > SO_MANY, FEW >= 2, time.monotonic() - 1 < 3]\n",
        encoding="utf-8",
    )

    texts = [mutant.text for mutant in find_mutants(path) if mutant.kind == "comparison"]

    assert texts == ["(1 <= SO_MANY)", "(FEW > 2)", "(time.monotonic() - 1 >= 3)"]


def test_what_is_logged_and_whether_it_is_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "logs.py"
    path.write_text(
        "if one > 1:\n    _log.info(2)\nif two > 3:\n    _log.info(4)\nelse:\n    act(5)\n", encoding="utf-8"
    )

    assert [(mutant.line, mutant.kind) for mutant in find_mutants(path)] == [
        (3, "condition"),
        (3, "comparison"),
        (3, "constant"),
        (6, "call removed"),
        (6, "constant"),
    ]


def test_a_sample_can_be_drawn_from_some_modules_of_a_package() -> None:
    drawn = choose_mutants(["policy", "runtime"], 10_000, 1, ["runtime/p*.py", "runtime/resume/lease.py"])

    names = {str(mutant.path.relative_to(ROOT / "src" / "ollm")) for mutant in drawn}
    assert names == {"runtime/parts.py", "runtime/plan.py", "runtime/resume/lease.py"}


def test_a_block_notes_who_comes_past_and_a_mutant_meets_those_tests_its_own_first(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(SOURCE, encoding="utf-8")
    source, found = path.read_bytes(), find_mutants(path)
    blocks = list_blocks(source)

    marked = mark_source(source, {block.name: number for number, block in enumerate(blocks)})

    assert [block.name for block in blocks] == ["is_small#0", "is_small#1"]
    assert b'    note_reach(1)\n        print("small")' in marked
    compile(marked, "small.py", "exec")
    assert [find_holders(source, blocks, mutant.start) for mutant in found[:5]] == [["is_small#0"]] * 5
    assert find_holders(source, blocks, found[5].start) == ["is_small#1"], "behind a condition fewer come past"


def test_a_function_that_is_called_while_its_module_is_loaded_is_known() -> None:
    source = b"def make():\n    return 1\n\n\ndef later():\n    return make() + 2\n\n\nMADE = [make()]\n"

    assert [is_called_at_load(source, source.index(word)) for word in (b"return 1", b"return make", b"MADE")] == [
        True,
        False,
        False,
    ]


def test_a_value_with_a_name_meets_the_tests_of_those_who_read_it(tmp_path: Path) -> None:
    package = tmp_path / "src" / "ollm"
    package.mkdir(parents=True)
    (package / "limits.py").write_text(
        "MAX_COUNT = 3\nTWICE_COUNT = 2 * MAX_COUNT\n\n\ndef idle() -> None:\n    return\n"
    )
    (package / "reader.py").write_text("def read() -> int:\n    return limits.TWICE_COUNT\n")
    mutant = find_mutants(package / "limits.py")[0]
    idle, read = "src/ollm/limits.py idle#0", "src/ollm/reader.py read#0"

    assert Reach({read: ["test of read"], idle: ["test of idle"]}, {}).list_past(mutant, tmp_path) == ["test of read"]
    assert Reach({idle: ["test of idle"]}, {}).list_past(mutant, tmp_path) == ["test of idle"], "where nobody is known"


def test_own_tests_come_first_then_those_of_the_package_then_the_rest_and_new_ones_are_tried() -> None:
    path = ROOT / "src" / "ollm" / "policy" / "grants.py"
    mutant = find_mutants(path)[-1]
    own, near, far = (
        "tests/policy/test_grants.py::own",
        "tests/policy/test_rules.py::near",
        "tests/cli/test_chat.py::far",
    )
    late = "tests/cli/test_chat.py::late"
    (name,) = find_holders(path.read_bytes(), list_blocks(path.read_bytes()), mutant.start)
    reach = Reach(
        {f"src/ollm/policy/grants.py {name}": [late, far, near, own]}, {own: 2.0, near: 0.1, far: 3.0, late: 8.0}
    )

    new = "tests/policy/test_grants.py::new"
    assert Judge(reach, 10).choose(mutant, [own, near, far, late, new]) == [new, own, near, far]
    assert Judge(reach, 12).choose(mutant, [own, near, far, late]) == [own, near, far, late]


def test_a_value_with_a_name_meets_the_tests_of_its_own_file_too() -> None:
    path = ROOT / "src" / "ollm" / "store" / "session_files" / "damage.py"
    mutant = find_mutants(path)[0]
    pinned, user = "tests/store/session_files/test_damage.py::pinned", "tests/store/session_files/test_scan.py::user"
    reach = Reach({"src/ollm/store/session_files/scan.py DocumentScan.__init__#0": [user]}, {pinned: 1.0, user: 0.1})

    assert Judge(reach, 10).choose(mutant, [user, pinned]) == [pinned, user]


def test_a_module_is_tested_under_its_name_and_a_package_under_its_own() -> None:
    services = ROOT / "src" / "ollm" / "services"

    found = [find_own_tests(services / name) for name in ("goals.py", "redaction/values.py", "redaction/__init__.py")]

    assert [str(path.relative_to("tests/services")) for path in found] == [
        "test_goals.py",
        "redaction/test_values.py",
        "redaction/test_redaction.py",
    ]


def test_what_a_named_mutant_switches_off_and_the_test_that_notices_it_are_there() -> None:
    for named in (*NAMED, *WEAK):
        source = (ROOT / "src" / "ollm" / named.module).read_text(encoding="utf-8")
        file, _, test = named.test.partition("::")
        assert source.count(named.before) == 1, named
        compile(source.replace(named.before, named.after), named.module, "exec")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), named


def test_an_explained_mutant_is_one_that_can_be_drawn() -> None:
    for module, line, kind in EXPLAINED:
        found = find_mutants(ROOT / "src" / "ollm" / module)
        lines = (ROOT / "src" / "ollm" / module).read_text(encoding="utf-8").splitlines()
        assert any((lines[one.line - 1].strip(), one.kind) == (line, kind) for one in found), (module, line)
        assert all(find_reason(one, ROOT) for one in found if (lines[one.line - 1].strip(), one.kind) == (line, kind))


@pytest.mark.skipif(not SOAK, reason="collects tests in a copy of the tree: make soak")
def test_a_fork_becomes_the_mutant_and_names_the_test_that_fails_and_the_next_is_whole_again() -> None:
    """The loaded code changes in the fork alone."""
    copy = Copy(["tests/domain/test_suggest.py"])
    inner = Path("src/ollm/domain/suggest.py")
    try:
        source = (ROOT / inner).read_bytes()
        mutant = next(found for found in find_mutants(ROOT / inner) if found.kind == "return")
        copy.write(inner, mutant.apply(source))
        failed = copy.run(copy.tests, 60, inner, mutant.line)
        copy.write(inner, source)
        assert failed in copy.tests
        assert copy.run(copy.tests, 60) == ""
    finally:
        copy.close()


ENDS_ITS_WORKER = """
import os, signal, time

def test_whole():
    pass

def test_ends_its_worker():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(20)
"""


def test_a_worker_that_ended_is_noticed_at_once_and_another_takes_its_place(tmp_path: Path) -> None:
    """Although what it started lives on."""
    (tmp_path / "src").mkdir()
    (tmp_path / "test_small.py").write_text(ENDS_ITS_WORKER, encoding="utf-8")
    copy = Copy(["test_small.py"], tmp_path)
    whole, last = "test_small.py::test_whole", "test_small.py::test_ends_its_worker"
    try:
        began = time.monotonic()
        with pytest.raises(WorkerGoneError):
            copy.run([last], 60)
        with pytest.raises(WorkerGoneError):
            copy.run([whole], 60)
        assert time.monotonic() - began < 15, "nobody waits for what it left"
        copy.start_again()
        assert copy.tests == [last, whole]
        assert copy.run([whole], 60) == ""
    finally:
        copy.close()


class CopyThatEnds:
    """Stands for a copy whose worker ends with each mutant of `ending` lines, and lives through the others."""

    def __init__(self, path: Path, ending: set[int]) -> None:
        self.path = path
        self.tests = ["tests/domain/test_suggest.py::one"]
        self.started = 0
        self._ending = ending
        self._ended = False

    def write(self, inner: Path, source: bytes) -> None:
        (self.path / inner).write_bytes(source)

    def run(self, tests: list[str], seconds: float, inner: Path | None = None, line: int = 0) -> str:
        assert not self._ended
        if line in self._ending:
            self._ended = True
            raise WorkerGoneError
        return ""

    def start_again(self) -> None:
        self._ended = False
        self.started += 1


def test_a_run_ends_with_an_outcome_for_each_mutant_when_workers_end(tmp_path: Path) -> None:
    inner = Path("src/ollm/domain/suggest.py")
    (tmp_path / inner).parent.mkdir(parents=True)
    (tmp_path / inner).write_bytes((ROOT / inner).read_bytes())
    blocks = list_blocks((ROOT / inner).read_bytes())
    inside = [one for one in find_mutants(ROOT / inner) if any(b.start <= one.start < b.end for b in blocks)]
    mutants = [inside[0], next(one for one in inside if one.line != inside[0].line)]
    copy: Any = CopyThatEnds(tmp_path, {mutants[0].line})

    outcomes: list[tuple[Mutant, str]] = judge_once(mutants, Judge(Reach({}, {}), 1), [copy])

    assert outcomes == [(mutants[0], DIED), (mutants[1], "")]
    assert copy.started == 2, "once to try again, once for those that follow"
    assert (tmp_path / inner).read_bytes() == (ROOT / inner).read_bytes()


def test_a_test_whose_name_has_spaces_is_found_in_what_pytest_prints() -> None:
    tests = ["tests/test_a.py::test[a b]", "tests/test_a.py::test[a b] - c]", "tests/test_a.py::test"]

    assert find_failed("FAILED tests/test_a.py::test[a b] - assert 1\n", tests) == tests[0]
    assert find_failed("x\nERROR tests/test_a.py::test[a b] - c] - error\n", tests) == tests[1]
    assert find_failed("FAILED tests/test_a.py::test", tests) == tests[2]
    assert find_failed("ERROR tests/test_a.py - ImportError", tests) == "", "the file, not a test"


FEW_REPORTS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call":
            item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_what_a_test_comes_past_is_noted_where_only_its_outcome_is_reported(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    shutil.copy(ROOT / "bench" / "mutants" / "reach_plugin.py", tmp_path / "src")
    source = b"def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    (tmp_path / "src" / "small.py").write_bytes(mark_source(source, {"one#0": 0, "two#0": 1}))
    (tmp_path / "conftest.py").write_text(FEW_REPORTS, encoding="utf-8")
    (tmp_path / "test_small.py").write_text(
        "import small\n\n\ndef test_one():\n    small.one()\n\n\ndef test_both():\n    small.one()\n    small.two()\n"
    )

    command = [sys.executable, "-m", "pytest", "-q", "-preach_plugin", *PLUGINS, "test_small.py"]
    subprocess.run(command, cwd=tmp_path, env=describe_environment(tmp_path), check=True, capture_output=True)

    one, both = "test_small.py::test_one", "test_small.py::test_both"
    found = read_notes(["one", "two"], tmp_path)
    assert found.blocks == {"one": [one, both], "two": [both]}
    assert set(found.seconds) == {one, both}
