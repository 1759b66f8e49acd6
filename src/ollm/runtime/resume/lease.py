"""Taking a workspace: refused with who has it, or, when forced, after asking them to close."""

from __future__ import annotations

import asyncio

from ollm.domain.errors import BusyError
from ollm.store.lease import Lease

OWNER_TIMEOUT_SECONDS = 5.0
RETRY_INTERVAL_SECONDS = 0.05


async def take_lease(lease: Lease, *, force: bool) -> None:
    """Hold the workspace. With `force` the owner is asked to close and given five seconds."""
    try:
        lease.acquire()
    except BusyError:
        if not force or not lease.ask_owner_to_close():
            raise
        await wait_for_lease(lease)


async def wait_for_lease(lease: Lease) -> None:
    deadline = asyncio.get_running_loop().time() + OWNER_TIMEOUT_SECONDS
    while True:
        try:
            return lease.acquire()
        except BusyError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise BusyError(
                    f"{error.message} It was asked to close but did not.", action="Stop that process, then try again."
                ) from error
        await asyncio.sleep(RETRY_INTERVAL_SECONDS)
