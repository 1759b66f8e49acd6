"""How a conversation is to be opened, said by any front end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import field

from ollm.domain.context import ModeName
from ollm.domain.struct import Data
from ollm.domain.tasks import ParentCall


class ConversationOptions(Data, frozen=True):
    """Which session, in which workspace, with what besides the settings."""

    workspace: Path
    session: str | None = None  # an id, or a unique prefix of one
    newest: bool = False  # resume the newest of the workspace
    full: bool = False
    force: bool = False
    beside: bool = False  # beside whoever has the workspace: the session's own lock is enough
    holder: str = ""  # who has the workspace through this, where it is not a chat
    one_shot: bool = False
    interactive: bool = False  # somebody is there to answer questions
    mode: ModeName | None = None
    grants: tuple[str, ...] = ()
    yes: bool = False
    flags: dict[str, Any] = field(default_factory=dict)
    mcp_servers: dict[str, Any] = field(default_factory=dict)  # those the front end brings; asked about before they run
    home: Path | None = None  # in place of ~/.ollm
    parent: ParentCall | None = None  # the call that began it: it is a task
    max_steps: int | None = None  # in place of loopDetection.maxTurns
    record: bool = True  # False: the session is erased, with every trace of it, when the conversation is closed
