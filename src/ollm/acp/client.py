"""What the agent asks of an editor, whatever library carries it."""

from __future__ import annotations

from typing import Protocol

from ollm.domain.errors import OllmError
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data


class ClientGoneError(OllmError):
    """There is no editor any more that could answer."""


class ClientRefusedError(OllmError):
    """The editor answered with an error."""


class ClientAbilities(Data, frozen=True):
    """What an editor offers. `shows_terminals`: it draws the output of our commands as a terminal."""

    reads_files: bool = False
    writes_files: bool = False
    shows_terminals: bool = False


class Editor(Protocol):
    """The other end. Updates are the protocol's JSON."""

    async def send_update(self, session_id: str, update: JsonObject) -> None: ...

    async def ask_permission(self, session_id: str, call: JsonObject, options: list[JsonObject]) -> str | None: ...

    async def read_text_file(self, session_id: str, path: str) -> str: ...

    async def write_text_file(self, session_id: str, path: str, text: str) -> None: ...
