"""Agents people define: `.ollm/agents/NAME.md` of a trusted workspace, and `~/.ollm/agents/NAME.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.front_matter import split_front_matter
from ollm.domain.suggest import format_suggestion
from ollm.domain.tasks import Agent
from ollm.system.terminal_text import strip_controls

MAX_AGENT_BYTES = 32_768
MAX_DESCRIPTION_CHARS = 200
AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def list_agent_names(directories: Sequence[Path]) -> list[str]:
    """The names there are, of all directories."""
    found = {
        file.stem
        for directory in directories
        if directory.is_dir()
        for file in directory.glob("*.md")
        if AGENT_NAME.fullmatch(file.stem) and file.is_file() and not file.is_symlink()
    }
    return sorted(found)


def load_agent(directories: Sequence[Path], name: str) -> Agent:
    """The agent of this name; of two the one of the earlier directory counts. Raises ToolFailure."""
    names = list_agent_names(directories)
    if name not in names:
        known = f"available: {', '.join(names)}." if names else "none is defined in .ollm/agents."
        raise ToolFailure("NotFound", f"There is no agent named {name[:80]}; {format_suggestion(name, names, known)}")
    file = next(place for directory in directories if (place := directory / f"{name}.md").is_file())
    with file.open("rb") as opened:
        data = opened.read(MAX_AGENT_BYTES + 1)
    if len(data) > MAX_AGENT_BYTES:
        raise ToolFailure("FileTooLarge", f"{file} has more than {MAX_AGENT_BYTES:,} bytes; make it shorter.")
    return read_agent(name, data.decode("utf-8", "replace").replace("\r\n", "\n"))


def read_agent(name: str, text: str) -> Agent:
    """Front matter: description, tools, model, mode; the rest are its instructions. Raises ToolFailure."""
    fields, body = split_front_matter(text)
    mode = fields.get("mode", "") or "plan"
    if mode not in get_args(ModeName):
        raise ToolFailure("ValidationError", f"Agent {name}: mode is {', '.join(get_args(ModeName))}, not {mode}.")
    tools = fields.get("tools", "").strip("[]").replace(",", " ").split()
    about = " ".join(strip_controls(fields.get("description", "")).split())
    return Agent(
        name=name,
        description=about[:MAX_DESCRIPTION_CHARS],
        instructions=body.strip(),
        mode=cast("ModeName", mode),
        model=fields.get("model", ""),
        tools=tuple(dict.fromkeys(tool.strip("\"'-") for tool in tools if tool.strip("\"'-"))),
    )
