"""`notify.command`: a command of the user's that is told when a session asks or a turn ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.config.settings import NotifySettings
from ollm.domain.events import ConfirmationRequested, Event, TurnFinished

if TYPE_CHECKING:
    from ollm.daemon.hub import DaemonSession

log = logging.getLogger(__name__)
TIMEOUT_SECONDS = 30.0


def make_notifier(
    settings: NotifySettings, environment: Mapping[str, str], url: str
) -> Callable[[DaemonSession, Event], None]:
    """Make what is called with each event of a session; it waits for no command."""
    tasks: set[asyncio.Task[None]] = set()

    async def run(text: bytes) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *settings.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
            try:
                await asyncio.wait_for(process.communicate(text), TIMEOUT_SECONDS)
            finally:
                if process.returncode is None:
                    process.kill()
        except (OSError, TimeoutError) as error:
            log.warning("notify.command failed: %r", error, extra={"operation": "notify"})

    def notify(held: DaemonSession, event: Event) -> None:
        if settings.command and isinstance(event, ConfirmationRequested | TurnFinished):
            place = {"sessionId": held.session_id, "url": f"{url}/#/session/{held.session_id}" if url else None}
            task = asyncio.ensure_future(run(msgspec.json.encode({**place, **describe(event, settings.contents)})))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    return notify


def describe(event: ConfirmationRequested | TurnFinished, contents: bool) -> dict[str, Any]:
    """Describe what happened, with its contents only if they are wanted."""
    if isinstance(event, ConfirmationRequested):
        asked = event.details
        more = {"question": asked.description, "command": asked.command} if contents else {}
        return {"event": "asks", "title": f"ollm asks about {asked.tool}", "tool": asked.tool, **more}
    title = "ollm has finished" if event.reason == "answered" else f"ollm has stopped: {event.reason}"
    return {
        "event": "ended",
        "title": title,
        "reason": event.reason,
        **({"message": event.message} if contents else {}),
    }
