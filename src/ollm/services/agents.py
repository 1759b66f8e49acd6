"""User-defined agents: `.ollm/agents/NAME.md` of a trusted workspace, and `~/.ollm/agents/NAME.md`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.text import format_suggestion, split_front_matter
from ollm.system.folders import find_named_files
from ollm.system.terminal_text import strip_controls

MAX_AGENT_BYTES = 32_768
MAX_DESCRIPTION_CHARS = 200
MAX_LISTED_CHARS = 800  # All agents in the tool's description share this limit.
MENTION = "agent-"


class Agent(Data, frozen=True):
    """A kind of worker defined in `.ollm/agents/NAME.md`. Without `tools` it has all tools of its mode. `problem` is
    the reason it cannot be used."""

    name: str
    description: str = ""
    instructions: str = ""
    mode: ModeName = "plan"
    model: str = ""
    tools: tuple[str, ...] = ()
    problem: str = ""


def complete_agent(directories: Sequence[Path], typed: str) -> list[str]:
    """List the mentions `agent-NAME` that start with the text typed after `@`."""
    mentions = (f"{MENTION}{name}" for name in find_named_files(directories)) if typed else ()
    return [mention for mention in mentions if mention.startswith(typed.lower())]


def describe_agents(directories: Sequence[Path]) -> str:
    """Return names and descriptions for the model, as many as fit, or "" without agents. An unreadable agent is
    omitted; using it reports the error."""
    told: list[str] = []
    left = MAX_LISTED_CHARS
    for name in find_named_files(directories):
        try:
            about = load_agent(directories, name).description.rstrip(".")
        except (ToolFailure, OSError):
            continue
        line = f"{name} ({about})" if about else name
        left -= len(line) + 2
        if left < 0:
            told.append("…")
            break
        told.append(line)
    return "; ".join(told)


def list_agents(directories: Sequence[Path], known_tools: Sequence[str]) -> list[Agent]:
    """List every defined agent; unusable ones come with the reason."""
    found = []
    for name in find_named_files(directories):
        try:
            agent = load_agent(directories, name)
            check_agent_tools(agent, known_tools)
        except (ToolFailure, OSError) as error:
            agent = Agent(name=name, problem=str(error))
        found.append(agent)
    return found


def check_agent_tools(agent: Agent, known: Sequence[str]) -> None:
    """Raise ToolFailure if a tool does not exist: without its tools an agent would only guess."""
    for tool in agent.tools:
        if tool not in known:
            near = format_suggestion(tool, known, f"there are {', '.join(known)}.")
            raise ToolFailure(
                "ValidationError", f"Agent {agent.name} names the tool {tool[:80]}, which is unknown; {near}"
            )


def load_agent(directories: Sequence[Path], name: str) -> Agent:
    """Load an agent by name; earlier directories take precedence. Raises ToolFailure."""
    files = find_named_files(directories)
    if (file := files.get(name)) is None:
        known = f"available: {', '.join(files)}." if files else "none is defined in .ollm/agents."
        raise ToolFailure("NotFound", f"There is no agent named {name[:80]}; {format_suggestion(name, files, known)}")
    with file.open("rb") as opened:
        data = opened.read(MAX_AGENT_BYTES + 1)
    if len(data) > MAX_AGENT_BYTES:
        raise ToolFailure("FileTooLarge", f"{file} has more than {MAX_AGENT_BYTES:,} bytes; make it shorter.")
    return read_agent(name, data.decode("utf-8", "replace").replace("\r\n", "\n"))


def read_agent(name: str, text: str) -> Agent:
    """Parse front matter (description, tools, model, mode), then instructions. Raises ToolFailure."""
    fields, body = split_front_matter(text)
    if not fields and text.lstrip("\ufeff").startswith("---\n"):
        raise ToolFailure("ValidationError", f"Agent {name}: its front matter has no end; put a line --- below it.")
    mode = fields.get("mode", "") or "plan"
    if mode not in get_args(ModeName):
        raise ToolFailure("ValidationError", f"Agent {name}: mode is {', '.join(get_args(ModeName))}, not {mode}.")
    tools = fields.get("tools", "").strip("[]").replace(",", " ").split()
    if "tools" in fields and not tools:
        raise ToolFailure(
            "ValidationError", f"Agent {name}: tools names none; name some, or leave the line out for all."
        )
    about = " ".join(strip_controls(fields.get("description", "")).split())
    return Agent(
        name=name,
        description=about[:MAX_DESCRIPTION_CHARS],
        instructions=body.strip(),
        mode=cast("ModeName", mode),
        model=fields.get("model", ""),
        tools=tuple(dict.fromkeys(tool.strip("\"'-") for tool in tools if tool.strip("\"'-"))),
    )
