"""What an editor lets a person choose: approval level, mode, model, and the slash commands they can type."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ollm.domain.context import Approval, ModeName
from ollm.domain.messages import JsonObject
from ollm.runtime.base import Status
from ollm.runtime.commands import build_command_table
from ollm.runtime.commands.custom import CustomCommands
from ollm.runtime.commands.settings import APPROVALS

APPROVAL_TEXTS: dict[Approval, str] = {
    "read-only": "Reads and searches; changes nothing.",
    "ask": "Asks before it changes files or runs commands.",
    "accept-edits": "Edits files in the workspace without asking.",
    "yolo": "Runs everything except what touches protected files without asking.",
}
MODE_TEXTS: dict[ModeName, str] = {
    "assistant": "Answers questions.",
    "plan": "Reads and plans; changes nothing.",
    "code": "Writes code.",
    "debug": "Finds and fixes faults.",
}
SCREEN_COMMANDS = frozenset({"exit", "quit", "new", "clear", "sessions", "resume", "copy", "expand"})


def build_modes(approval: str) -> JsonObject:
    """The protocol's modes are our approval levels."""
    modes = [{"id": level, "name": level, "description": APPROVAL_TEXTS[level]} for level in APPROVALS]
    return {"currentModeId": approval, "availableModes": modes}


def build_config_options(status: Status, models: Iterable[str]) -> list[JsonObject]:
    names = dict.fromkeys([status.model, *models])
    return [
        build_select("approval", "Approval", status.approval, dict(APPROVAL_TEXTS), category="mode"),
        build_select("mode", "Mode", status.mode, dict(MODE_TEXTS)),
        build_select("model", "Model", status.model, dict.fromkeys(names, ""), category="model"),
    ]


def build_select(
    option_id: str,
    name: str,
    current: str,
    values: dict[str, str] | dict[Approval, str] | dict[ModeName, str],
    category: str = "",
) -> JsonObject:
    options = [
        {"value": value, "name": value, **({"description": text} if text else {})} for value, text in values.items()
    ]
    select = {"type": "select", "id": option_id, "name": name, "currentValue": current, "options": options}
    return {**select, "category": category} if category else select


def build_commands(directories: tuple[Path, ...]) -> list[JsonObject]:
    """Our commands but those that only a screen can do, and the person's own."""
    own = CustomCommands(directories)
    found = [
        make_command(command.name, command.help, command.usage)
        for command in build_command_table().list_all()
        if command.name not in SCREEN_COMMANDS
    ]
    known = {command["name"] for command in found} | SCREEN_COMMANDS
    found += [
        make_command(name, own.describe(name) or name, "[TEXT]") for name in own.list_names() if name not in known
    ]
    return found


def make_command(name: str, text: str, usage: str) -> JsonObject:
    hint = {"input": {"hint": usage}} if usage else {}
    return {"name": name, "description": text, **hint}
