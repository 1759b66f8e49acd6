"""Put beside the marked sources: writes down which test came past which block, and how long each passing test took."""

import json
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

ROOT = Path(__file__).parents[1]
NOTES, TIMES = "reached.bin", "times.txt"
ENTRY = struct.Struct("<II")  # a test, by its name's checksum, and a block
_seen: set[int] = set()
_taken: dict[str, float] = {}
_tests_process = [0]


def note_reach(number: int) -> None:
    """Called where a block begins, in whichever process of the test runs there."""
    if number not in _seen:
        _seen.add(number)
        if os.getpid() != _tests_process[0]:
            _append(NOTES, _describe(_name_test(), [number]))


os.register_at_fork(after_in_child=_seen.clear)


def _name_test() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


def _describe(test: str, numbers: list[int]) -> bytes:
    return b"".join(ENTRY.pack(crc32(test.encode("utf-8", "replace")), number) for number in numbers) if test else b""


def _append(name: str, data: bytes) -> None:
    """Opened each time: a process may close what it does not know, and use the number again."""
    with suppress(OSError):
        handle = os.open(ROOT / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)


def pytest_configure(config: Any) -> None:
    _tests_process[0] = os.getpid()
    config.pluginmanager.register(_make_item_notes())


def _make_item_notes() -> Any:
    """Around each test as a whole: of one that passes no report needs to be made. What is run with the marked sources
    does without pytest, so it is imported here."""
    import pytest

    class ItemNotes:
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self, item: Any) -> Any:
            _seen.clear()
            try:
                return (yield)
            finally:
                _append(NOTES, _describe(item.nodeid, list(_seen)))

    return ItemNotes()


def pytest_runtest_logreport(report: Any) -> None:
    """A controller of parallel runs hears of each test as well; only who ran it knows how it went by."""
    _taken[report.nodeid] = _taken.get(report.nodeid, 0.0) + report.duration
    if report.when == "call" and report.passed and not hasattr(report, "node"):
        _append(TIMES, json.dumps([report.nodeid, _taken[report.nodeid]]).encode() + b"\n")
