"""A pytest that has collected its tests once and forks for each mutant: the fork becomes the mutant and runs the tests
it is told, in that order, until one fails. Started with the files to collect; asked line by line on its input."""

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

TIMED_OUT = "took too long"
DIED = "ended by itself"
NOT_RUN = "nothing ran"  # every test that was asked for was skipped


class ForkPerMutant:
    """Takes the place of the loop that runs the tests."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def pytest_sessionstart(self) -> None:
        """A failure is enough; the smallest example of it is not looked for."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self._answer(sorted(items))
        for line in sys.stdin:
            self._answer(run_fork(items, json.loads(line), self._answers))
        return True

    def _answer(self, answer: Any) -> None:
        os.write(self._answers, json.dumps(answer).encode() + b"\n")


def run_fork(items: dict[str, pytest.Item], asked: dict[str, Any], answers: int) -> str:
    """The name of the test that failed, or nothing. A fork does not hold the pipe of the answers open."""
    place = Path(tempfile.mkdtemp(prefix="ollm-mutant-"))
    process = os.fork()
    if not process:
        try:
            os.close(answers)
            become_mutant([items[test] for test in asked["tests"] if test in items], asked, place)
        finally:
            os._exit(70)
    ended = wait_for(process, asked["seconds"])
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    failed = place / "failed"
    answer = failed.read_text(encoding="utf-8") if failed.exists() else TIMED_OUT if ended is None else DIED
    shutil.rmtree(place, ignore_errors=True)
    return answer


def become_mutant(items: list[pytest.Item], asked: dict[str, Any], place: Path) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    sys.stdin = os.fdopen(0, encoding="utf-8")
    os.environ["OLLM_HOME"] = str(place / "home")
    (place / "home").mkdir()
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)
    replace_code(asked)
    noted = Verdict()
    items[0].config.pluginmanager.register(noted)
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if noted.failed:
            break
    (place / "failed").write_text(noted.failed or ("" if noted.ran else NOT_RUN), encoding="utf-8")
    os._exit(0)


class Verdict:
    """The first test that failed, and whether any was not skipped."""

    def __init__(self) -> None:
        self.failed = ""
        self.ran = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran = self.ran or (report.when == "call" and not report.skipped)
        if report.failed and not self.failed:
            self.failed = report.nodeid


def replace_code(asked: dict[str, Any]) -> None:
    """Give functions that are loaded already the code of the changed text; the rest is read from it when loaded."""
    if not asked.get("path"):
        return
    text = Path(asked["path"]).read_text(encoding="utf-8")
    changed = {
        (code.co_qualname, code.co_firstlineno): code
        for code in walk_code(compile(text, asked["path"], "exec", dont_inherit=True))
    }
    gc.unfreeze()  # what was frozen after collection is not listed
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == asked["path"]:
            code = function.__code__
            new = changed.get((code.co_qualname, code.co_firstlineno))
            if new is not None and new.co_freevars == code.co_freevars and code.co_firstlineno <= asked["line"]:
                function.__code__ = new


def walk_code(code: CodeType) -> Sequence[CodeType]:
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += walk_code(constant)
    return found


def wait_for(process: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return status
        time.sleep(0.02)
    for end in (os.killpg, os.kill):  # it may have left its group
        with suppress(ProcessLookupError, PermissionError):
            end(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.exit(int(pytest.main(["-q", "-s", "--no-header", *sys.argv[1:]], plugins=[ForkPerMutant(answers)])))


if __name__ == "__main__":
    main()
