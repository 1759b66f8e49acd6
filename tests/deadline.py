"""The time that a step of a test may take: one that waits for what never comes fails, and says where it waited."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.sizes import size

MAX_STEP_SECONDS = size(300, soak=7200)
AGAIN_SECONDS = 30.0  # what a failed step waits for while it cleans up ends too


@contextmanager
def limit_seconds(seconds: float = MAX_STEP_SECONDS) -> Iterator[None]:
    """Fail what takes longer, wherever it is. Processes that are started have no such limit: it is this one's."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"it took longer than {seconds:g} seconds"))
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
