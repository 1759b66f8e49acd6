"""A chat in a workspace that has one open: beside it, in its place, or not at all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ollm.app import ProcessScope
    from ollm.cli.start import ChatArguments
    from ollm.store.lease import Lease, LeaseOwner

DAEMON_TIMEOUT_SECONDS = 5.0
RETRY_INTERVAL_SECONDS = 0.05
QUESTION = "[b] open beside it · [t] take over, which closes it there · [q] quit: "


def settle_workspace(process: ProcessScope, start: ChatArguments) -> ChatArguments | None:
    """How to open the chat, after asking where another one is open; None to open none."""
    from ollm.app import WorkspaceScope

    lease = WorkspaceScope(process, start.workspace).create_lease()
    owner = lease.find_other_owner()
    if owner is None or process.settings.workspace.sessions == "many" or _ask_daemon(lease, owner):
        return start
    print(f"This workspace is in use by {owner.describe()}.")
    try:
        said = input(QUESTION).strip().lower()
    except EOFError:
        return None
    if said in ("b", "beside"):
        return msgspec.structs.replace(start, beside=True)
    return msgspec.structs.replace(start, force=True) if said in ("t", "take over") else None


def _ask_daemon(lease: Lease, owner: LeaseOwner) -> bool:
    """Whether the daemon had it, with nobody there, and has let go."""
    if not owner.is_daemon or not lease.ask_owner_to_close(only_when_idle=True):
        return False
    deadline = time.monotonic() + DAEMON_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if lease.find_other_owner() is None:
            return True
        time.sleep(RETRY_INTERVAL_SECONDS)
    lease.withdraw_request()
    return False
