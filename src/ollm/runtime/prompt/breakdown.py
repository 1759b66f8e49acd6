"""The parts of the next request with their tokens, as listed by `ollm context show` and `/context`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ollm.domain.struct import Data
from ollm.runtime.prompt.prefix import build_instructions
from ollm.services.token_counting import MESSAGE_UNITS

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

ROLES = ("user", "assistant", "tool", "system")


class ContextPart(Data, frozen=True):
    """One line of `ollm context show`."""

    name: str
    tokens: int


def list_context_parts(prompt: Prompt) -> list[ContextPart]:
    """List all parts in the order they are sent."""
    counter = prompt.counter
    standing = prompt.get_system_prompt()
    told = build_instructions(prompt.model.window, prompt.mode)
    told = told if standing.startswith(told) else ""  # The block protocol has its own rules.
    by_role = dict.fromkeys(ROLES, 0)
    for message in prompt.get_active_context().messages:
        by_role[message.role] += counter.count_message(message.without_thinking())
    (system, *worked), tools = prompt.render_prefix()
    listed = system.content.replace(standing, "", 1)
    shown = [ContextPart(name="worked calls", tokens=counter.count_messages(worked))] if worked else []
    return [
        ContextPart(name="instructions", tokens=counter.convert_to_tokens(MESSAGE_UNITS + counter.count_units(told))),
        ContextPart(name="context entries", tokens=counter.count_text(standing[len(told) :])),
        ContextPart(name="tool schemas", tokens=counter.count_schemas(tools) + counter.count_text(listed)),
        *shown,
        ContextPart(name="checkpoints", tokens=prompt.compute_budget().checkpoints),
        *(ContextPart(name=f"{role} messages", tokens=tokens) for role, tokens in by_role.items()),
        *([ContextPart(name="thinking", tokens=prompt.thinking_tokens)] if prompt.thinking_tokens else []),
    ]


def list_entry_names(prompt: Prompt) -> list[str]:
    """List the names of the context entries, such as AGENTS.md."""
    return [entry.key for entry in prompt.entries.get_standing_entries()]


def count_hidden_tools(prompt: Prompt) -> dict[str, int]:
    """Count, per server, the tools that do not fit the window and are found with `find_tool`."""
    finder = next((tool for tool in prompt.tools if tool.name == "find_tool"), None)
    listed = finder.description.partition("There are:")[2] if finder else ""
    return {name: int(count) for name, count in re.findall(r"(?:^|\n|, ?| )([\w-]+) \((\d+)\)", listed)}


def describe_hidden_tools(prompt: Prompt) -> str:
    """Describe the hidden tools in a sentence, or return "" if there are none."""
    hidden = count_hidden_tools(prompt)
    told = ", ".join(f"{count} of {name}" for name, count in hidden.items())
    return f"Tools without room, found with find_tool: {told}." if hidden else ""
