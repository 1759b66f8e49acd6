"""A chat in a workspace that has one open: beside it, in its place, or not at all."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from ollm.system.terminal_text import wrap_words

if TYPE_CHECKING:
    from ollm.app import ProcessScope
    from ollm.cli.start import ChatArguments
    from ollm.store.lease import Lease, LeaseOwner

DAEMON_TIMEOUT_SECONDS = 5.0
REFUSED_SECONDS = 1.0  # in which one that has just left may still be counted there
QUIET_SECONDS = 0.5  # before a line says what is waited for
RETRY_INTERVAL_SECONDS = 0.05
ASKING_DAEMON = "Asking the daemon for the workspace …"  # one line at 40 columns
QUESTION = "[b] open beside it · [t] take over, which closes it there · [q] quit:"
KEYS = ("b", "t", "q")
QUIT_KEYS = ("", "\x04", "\x1b")
MAX_KEY_BYTES = 64


def settle_workspace(process: ProcessScope, start: ChatArguments) -> ChatArguments | None:
    """Choose how to open the chat, after a question if another one is open; None to open none."""
    from ollm.app import WorkspaceScope

    lease = WorkspaceScope(process, start.workspace).create_lease()
    owner = lease.find_other_owner()
    if owner is None or process.settings.workspace.sessions == "many" or _ask_daemon(lease, owner):
        return start
    print(wrap_words(f"This workspace is in use by {owner.describe()}."))
    key = _ask_for_key()
    if key == "b":  # the newest session is the one that is open there, so none is offered unless asked for
        anew = not (start.pick or start.session or start.continue_)
        return msgspec.structs.replace(start, beside=True, new=anew)
    return msgspec.structs.replace(start, force=True) if key == "t" else None


def _ask_for_key() -> str:
    """`b`, `t` or `q`, without Enter; Esc, Ctrl-D and a terminal that is gone mean `q`, other keys nothing."""
    import termios
    import tty

    inlet = sys.stdin.fileno()
    before = termios.tcgetattr(inlet)
    tty.setcbreak(inlet)  # before the question is there: what was typed earlier is no answer
    try:
        print(wrap_words(QUESTION), end=" ", flush=True)
        key = ""
        while key not in KEYS:
            pressed = os.read(inlet, MAX_KEY_BYTES).decode(errors="replace")
            key = "q" if pressed in QUIT_KEYS else pressed.strip().lower()  # pasted words are no answer
        print(key)
    finally:
        termios.tcsetattr(inlet, termios.TCSAFLUSH, before)  # an Enter from habit is dropped
    return key


def _ask_daemon(lease: Lease, owner: LeaseOwner) -> bool:
    """Ask the daemon to release the workspace; False if it does not hold it or someone uses it."""
    if not owner.is_daemon or not lease.ask_owner_to_close(only_when_idle=True):
        return False
    asked, told = time.monotonic(), False
    try:
        while (waited := time.monotonic() - asked) < DAEMON_TIMEOUT_SECONDS:
            refused = not lease.is_requested
            if lease.find_other_owner() is None:
                return True
            if refused and (waited > REFUSED_SECONDS or not lease.ask_owner_to_close(only_when_idle=True)):
                return False
            if waited > QUIET_SECONDS and not told:
                told = True
                print(ASKING_DAEMON, end="", flush=True)
            time.sleep(RETRY_INTERVAL_SECONDS)
        lease.withdraw_request()
        return False
    finally:
        if told:
            print("\r\x1b[K", end="", flush=True)
