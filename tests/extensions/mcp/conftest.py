"""Patience for servers that start on a busy machine."""

import pytest


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time to start a server."""
    monkeypatch.setattr("ollm.extensions.mcp.servers.FIRST_WAIT_SECONDS", 30.0)
