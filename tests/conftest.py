"""What every test run does: keep the user's own home out of it, quick tests first, requirements checked both ways."""

import gc
import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.deadline import limit_seconds
from tests.parallel_run import FileScheduling, order_files, run_with_few_reports
from tests.requirements import OPEN, OPEN_FILE, REQUIREMENTS, SAME, STRICT
from tests.sizes import SOAK, size
from tests.traced import Coverage, is_whole_suite, ordered
from tests.unsynced import leave_writes_in_memory

pytest_plugins = ["tests.servers.llama", "tests.servers.postgres", "tests.servers.archive_machine"]

TESTS = Path(__file__).parent
sys.dont_write_bytecode = (
    False  # the same modules are imported by thousands of processes: compiled once, wherever this runs
)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile(
    "ollm",
    deadline=None,
    derandomize=not SOAK,  # the usual run tries the same examples every time; `make soak` looks for new ones
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ollm")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-open", action="store_true", help="write requirements/open.txt anew (whole suite only)")


def pytest_configure(config: pytest.Config) -> None:
    """A run in the background may have been started deaf to Ctrl-C; what the tests start must hear it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith(("OLLM_", "OLLAMA_"))]:
        if name != "OLLM_SOAK" and not name.startswith("OLLM_INTEGRATION"):
            del os.environ[name]
    os.environ["OLLM_HOME"] = tempfile.mkdtemp(prefix="ollm-test-home-")
    leave_writes_in_memory()
    config.pluginmanager.register(FolderTimes(), "ollm-folder-times")


class FolderTimes:
    """Adds up how long the tests of each folder took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.split("::")[0].rpartition("/")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds per folder", sep="-")
        for folder, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{seconds:8.1f}  {folder}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Half a surrogate pair in what a test printed or logged cannot travel from a worker."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    return run_with_few_reports(item, nextitem)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    with limit_seconds():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with limit_seconds():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    with limit_seconds():
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever takes its counts from `tests/sizes.py`, or is left out of the usual run, belongs to the long one."""
    left_out = any("make soak" in marker.kwargs.get("reason", "") for marker in item.iter_markers("skipif"))
    if left_out or getattr(getattr(item, "module", None), "size", None) is size:
        item.add_marker("soak")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
    if hasattr(config, "workerinput"):
        order_files(items)
    named = {str(name) for item in items for marker in item.iter_markers("covers") for name in marker.args}
    coverage = Coverage(REQUIREMENTS, OPEN, frozenset(named), SAME)
    if config.getoption("--write-open") and is_whole_suite(config):
        OPEN_FILE.write_text("".join(f"{item}\n" for item in ordered(coverage.uncovered())), encoding="utf-8")
        coverage = Coverage(REQUIREMENTS, coverage.uncovered(), frozenset(named), SAME)
    mistakes = coverage.mistakes(whole=is_whole_suite(config), strict=STRICT)
    if mistakes:
        raise pytest.UsageError("requirements and tests disagree:\n  " + "\n  ".join(mistakes))
    config.stash[COVERAGE] = coverage


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays to the end: nobody looks through it for garbage, now or later."""
    gc.disable()
    if is_second_worker(session.config):
        for path in sorted(TESTS.rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # told when it is collected
                import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def is_second_worker(config: pytest.Config) -> bool:
    """It begins at the end of the list, so that each of two compiles half of the tests and finds the other half done."""
    given = getattr(config, "workerinput", {})
    return given.get("workerid") == "gw1" and is_whole_suite(config)


COVERAGE = pytest.StashKey[Coverage]()
SUMMARY = pytest.StashKey[list[str]]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of a parallel run hands its summary to the process that prints."""
    coverage = session.config.stash.get(COVERAGE, None)
    if coverage is not None and is_whole_suite(session.config):
        session.config.stash[SUMMARY] = coverage.summary()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["requirements"] = coverage.summary()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["whole"] = is_whole_suite(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if lines := getattr(node, "workeroutput", {}).get("requirements"):
        node.config.stash[SUMMARY] = lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(SUMMARY, None):
        terminalreporter.section("requirements", sep="-")
        for line in lines:
            terminalreporter.write_line(line)
