"""Taking a workspace, and asking for one that is held."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from ollm.domain.clock import now
from ollm.domain.errors import BusyError
from ollm.runtime.resume import lease as module
from ollm.runtime.resume.lease import take_lease
from ollm.store.lease import Lease


@pytest.fixture(autouse=True)
def ignore_the_signal() -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


async def test_a_free_workspace_is_taken(tmp_path: Path) -> None:
    lease = Lease(tmp_path, now)

    await take_lease(lease, force=False)

    assert lease.held
    lease.release()


async def test_one_that_is_held_is_refused_with_who_has_it(tmp_path: Path) -> None:
    owner = Lease(tmp_path, now)
    owner.acquire()

    with pytest.raises(BusyError, match=f"process {os.getpid()}"):
        await take_lease(Lease(tmp_path, now), force=False)
    owner.release()


async def test_a_forced_one_waits_until_the_owner_gives_way(tmp_path: Path) -> None:
    owner, other = Lease(tmp_path, now), Lease(tmp_path, now)
    owner.acquire()
    taking = asyncio.create_task(take_lease(other, force=True))
    await asyncio.sleep(0.1)
    assert not taking.done()

    owner.release()
    await asyncio.wait_for(taking, 30)

    assert other.held
    other.release()


async def test_an_owner_that_does_not_give_way_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OWNER_TIMEOUT_SECONDS", 0.1)
    owner = Lease(tmp_path, now)
    owner.acquire()

    with pytest.raises(BusyError, match="It was asked to close but did not") as told:
        await take_lease(Lease(tmp_path, now), force=True)

    assert told.value.action == "Stop that process, then try again."
    owner.release()
