"""What the tests of child processes share."""

import os
import uuid
from collections.abc import AsyncIterator

import pytest

from ollm.system.processes import ProcessHost


@pytest.fixture
async def host() -> AsyncIterator[ProcessHost]:
    host = ProcessHost()
    yield host
    await host.close()


@pytest.fixture
def mark() -> str:
    """A sleeping time no other process has, to find ours by."""
    return f"1{uuid.uuid4().int % 10**9}.{os.getpid()}"
