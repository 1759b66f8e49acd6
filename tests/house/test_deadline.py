"""A test that waits for what never comes fails, and is named."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deadline import limit_seconds
from tests.parallel_run import LONG_ROOMS

ROOT = Path(__file__).parents[2]


async def wait_without_end() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "wait",
    [lambda: time.sleep(60), lambda: os.read(os.pipe()[0], 1), lambda: asyncio.run(wait_without_end())],
    ids=["sleep", "read", "loop"],
)
def test_what_never_comes_is_waited_for_so_long_and_no_longer(wait: Callable[[], object]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(pytest.fail.Exception, match=r"longer than 0\.1 seconds"), limit_seconds(0.1):
        wait()

    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.fixture
def seconds_left() -> Iterator[float]:
    yield signal.getitimer(signal.ITIMER_REAL)[0]
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 0


def test_every_step_of_every_test_has_a_limit(seconds_left: float) -> None:
    assert seconds_left > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 0


def test_the_files_that_come_first_are_there() -> None:
    assert [name for name in LONG_ROOMS if not (ROOT / "tests" / name).is_dir()] == []
