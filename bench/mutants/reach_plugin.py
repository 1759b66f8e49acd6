"""Put beside the marked sources: writes down which test reached which mutant, and how long each passing test took."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_seen: set[tuple[int, str]] = set()
_taken: dict[str, float] = {}


def note(number: int) -> None:
    """Called where a mutant would be, in whichever process of the test runs there."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test and (number, test) not in _seen:
        _seen.add((number, test))
        _append("reached.txt", [number, test])


def _append(name: str, entry: list[Any]) -> None:
    with suppress(OSError):
        handle = os.open(ROOT / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, json.dumps(entry).encode() + b"\n")
        finally:
            os.close(handle)


def pytest_sessionstart() -> None:
    """A failure is enough; the smallest example of it is not looked for."""
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings(settings.default, phases=phases, database=None))
    settings.load_profile("mutants")


def pytest_runtest_logreport(report: Any) -> None:
    _taken[report.nodeid] = _taken.get(report.nodeid, 0.0) + report.duration
    if report.when == "call" and report.passed:
        _append("times.txt", [report.nodeid, _taken[report.nodeid]])
