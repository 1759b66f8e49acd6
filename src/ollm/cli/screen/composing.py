"""Conversion of input to messages: pastes are unfolded; `@file`, `@directory` and `@server:uri` attached."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import OllmError, UsageError
from ollm.domain.files import DiscoveryOptions
from ollm.domain.text import format_count
from ollm.runtime.base import Attachment, Conversation
from ollm.runtime.mentions import (
    MAX_TEXT_BYTES,
    describe_missing,
    find_mentions,
    locate,
    read_attachment,
)

FOLD_LINES = 8
FOLD_CHARACTERS = 1_200
MAX_LISTED_FILES = 200
_RESOURCE = re.compile(r"(?:^|(?<=[\s(]))@([A-Za-z0-9][A-Za-z0-9_-]*):([^\s\"]+)")


InputKind = Literal["shell", "command", "message"]


def parse_input(typed: str) -> tuple[InputKind, str]:
    """Return what was typed and its text without a mark: `!` runs in the shell, `/` is a command, `//` a message that
    begins with a slash, `?` lists the keys, `#` on one line before a letter is a note, all else is a message."""
    if typed.startswith("!"):
        return "shell", typed[1:].strip()
    if typed.startswith("#") and "\n" not in typed.strip() and typed[1:].strip()[:1].isalpha():
        return "command", f"memory note {typed[1:].strip()}"
    if typed.strip() == "?":
        return "command", "help keys"
    if typed.startswith("/") and not typed.startswith("//"):
        return "command", typed[1:]
    return "message", typed[1:] if typed.startswith("//") else typed


class Pastes:
    """Long pasted blocks, shown in the input as a chip and sent in full."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def fold(self, text: str) -> str:
        lines = text.removesuffix("\n").count("\n") + 1
        if lines < FOLD_LINES and len(text) < FOLD_CHARACTERS:
            return text
        chip = f"[pasted {format_count(lines, 'line')} #{len(self.kept) + 1}]"
        self.kept[chip] = text
        return chip

    def unfold(self, text: str) -> str:
        """Replace chips by their text in one pass: a chip inside pasted text stays text."""
        if not self.kept:
            return text
        chips = re.compile("|".join(map(re.escape, self.kept)))
        return chips.sub(lambda found: self.kept[found[0]], text)


async def attach_mentions(text: str, workspace: Path, conversation: Conversation) -> tuple[list[Attachment], list[str]]:
    found, problems = collect_mentions(text, workspace)
    resources, unread = await collect_resources(text, conversation)
    return [*found, *resources], [*problems, *unread]


def collect_mentions(text: str, workspace: Path) -> tuple[list[Attachment], list[str]]:
    attachments: list[Attachment] = []
    problems: list[str] = []
    for name in find_mentions(text, workspace):
        path = locate(name, workspace)
        if path is None:
            why = "" if _RESOURCE.fullmatch(f"@{name}") else describe_missing(name, workspace)
            problems += [f"@{name} was not attached: {why}"] if why else []
            continue
        try:
            attachments.append(attach_path(name, path, workspace))
        except (OSError, ValueError) as error:
            problems.append(f"@{name} was not attached: {getattr(error, 'strerror', None) or error}")
    return attachments, problems


async def collect_resources(text: str, conversation: Conversation) -> tuple[list[Attachment], list[str]]:
    """Collect MCP resources named as `@server:uri`, and list those that cannot be read."""
    attachments: list[Attachment] = []
    problems: list[str] = []
    for server, named in dict.fromkeys(_RESOURCE.findall(text)):
        uri = named.rstrip(".,;)!?")
        try:
            found = await conversation.command("resource", f"{server} {uri}")
        except UsageError:
            continue  # No server has that name, so the words mean something else.
        except OllmError as error:
            problems.append(f"@{server}:{uri} was not attached: {error}")
            continue
        if isinstance(found.data, str):
            attachments.append(Attachment(name=f"{server}:{uri}", text=found.data[:MAX_TEXT_BYTES]))
    return attachments, problems


def attach_path(name: str, path: Path, workspace: Path) -> Attachment:
    """Attach a file, or the list of a directory. Raises ValueError for a pipe, a device, or another kind of file."""
    if path.is_dir():
        return list_directory(name, path, workspace)
    if not path.is_file():
        raise ValueError("not a file")
    with path.open("rb") as file:
        return read_attachment(name, file)


def list_directory(name: str, path: Path, workspace: Path) -> Attachment:
    """List the files below a directory that the agent can see, up to a limit."""
    scope = WorkspaceScope(ProcessScope(workspace=workspace), workspace)
    inside = path.resolve().is_relative_to(workspace.resolve())
    try:
        options = DiscoveryOptions(root=str(path), within=str(workspace) if inside else None)
        found = scope.discovery.read_paths(options)
    finally:
        scope.close()
    shown = found.paths[:MAX_LISTED_FILES]
    more = [f"({len(found.paths) - len(shown):,} more)"] if len(shown) < len(found.paths) else []
    count = format_count(len(found.paths), "file")
    return Attachment(name=f"{name.rstrip('/')}/ ({count})", text="\n".join([*shown, *more]) or "(empty)")


MAX_OUTPUT_BYTES = 200_000
TerminalContext = AbstractAsyncContextManager[None]


async def run_own_command(command: str, workspace: Path, terminal: TerminalContext) -> tuple[int, Attachment]:
    """Run a command on the terminal. Returns its exit code and the end of its output as an attachment."""
    output = b""
    async with terminal:
        process = await asyncio.create_subprocess_shell(
            command, cwd=workspace, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout
        try:
            while data := await process.stdout.read(65536):
                output = (output + data)[-MAX_OUTPUT_BYTES:]
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
        finally:
            if process.returncode is None:
                await wait_or_kill(process)
    return process.returncode or 0, Attachment(name=f"$ {command}", text=output.decode("utf-8", "replace"))


async def wait_or_kill(process: asyncio.subprocess.Process) -> None:
    """Wait for a command. If it has closed its output but still runs, kill it after another second."""
    try:
        await asyncio.wait_for(process.wait(), 1)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
