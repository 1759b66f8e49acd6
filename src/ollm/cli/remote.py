"""Conversations in the daemon, for `ollm chat --daemon`: started on demand, left without ending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ollm.cli.start import ChatArguments
from ollm.domain.errors import UsageError
from ollm.runtime.base import Conversation

if TYPE_CHECKING:
    from ollm.daemon.bodies import InitReply
    from ollm.daemon.client import DaemonClient

LOCAL_ONLY_FLAGS = {"provider": "--provider, --base-url and --model"}


@asynccontextmanager
async def connect_daemon() -> AsyncIterator[DaemonClient]:
    """The daemon of this home; started when it is not running."""
    from ollm.cli.daemon import get_run_files, is_listening, start_daemon
    from ollm.daemon.client import DaemonClient

    files = get_run_files()
    if not is_listening(files):
        await asyncio.to_thread(start_daemon, files)
    client = DaemonClient(files.socket)
    try:
        yield client
    finally:
        await client.close()


def refuse_local_flags(start: ChatArguments) -> None:
    """Refuse options that apply to one run of the program and cannot reach a running daemon."""
    named = [words for key, words in LOCAL_ONLY_FLAGS.items() if start.flags.get(key)]
    named += ["--allow"] if start.allow else []
    named += ["--yes"] if start.yes else []
    if named:
        raise UsageError(
            f"{', '.join(named)} cannot be combined with --daemon, which uses your settings.",
            action="Use `ollm config set`, or /model and /approval in the chat.",
        )


@asynccontextmanager
async def open_remote_conversation(start: ChatArguments) -> AsyncIterator[Conversation]:
    """A conversation whose turn runs in the daemon; leaving it detaches and ends nothing."""
    from ollm.daemon.client import initialise_workspace, open_remote

    async with connect_daemon() as client:
        body: dict[str, Any] = {"workspacePath": str(start.workspace), "full": start.full, "force": start.force}
        known = await initialise_workspace(client, start.workspace)
        if session := find_session_id(known, start):
            body["sessionId"] = session
        conversation = await open_remote(client, body)
        if start.mode:
            await conversation.command("mode", start.mode)
        if approval := start.flags.get("policy", {}).get("approval"):
            await conversation.command("approval", approval)
        if model := start.flags.get("provider", {}).get("model"):  # chosen in the session before this one
            await conversation.command("model", model)
        try:
            yield conversation
        finally:
            await conversation.close()


def find_session_id(known: InitReply, start: ChatArguments) -> str | None:
    """The whole id of the session that was asked for; None for a new one."""
    if start.session:
        from ollm.app import ProcessScope

        return ProcessScope().session_files.places.find(start.session)
    if not start.continue_:
        return None
    unarchived = [line for line in known.sessions if line.status != "archived"]
    return unarchived[0].session_id if unarchived else None
