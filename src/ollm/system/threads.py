"""Blocking work in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread that delays neither a cancelled caller nor the end of the program."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # A caller that is cancelled leaves the work running.

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised for the caller
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="ollm-work").start()
    return await asyncio.wrap_future(done)
