"""The parts of the next request with their tokens: what `ollm context show` and `/context` list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.struct import Data
from ollm.runtime.prompt.instructions import instructions
from ollm.services.context_manager import render

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

PROJECT_MAP = "project map"
ROLES = ("user", "assistant", "tool", "system")


class ContextPart(Data, frozen=True):
    """One line of `ollm context show`."""

    name: str
    tokens: int


def context_parts(prompt: Prompt) -> list[ContextPart]:
    """Every part, in the order it is sent."""
    counter = prompt.counter
    told = instructions(prompt.model.window, prompt.mode)
    entries, project_map = prompt.system_prompt()[len(told) :], _project_map(prompt)
    by_role = dict.fromkeys(ROLES, 0)
    for message in prompt.active_context().messages:
        by_role[message.role] += counter.message(message)
    (system, *worked), tools = prompt.front_as_sent()
    listed = system.content[len(prompt.system_prompt()) :]
    shown = [ContextPart(name="worked calls", tokens=counter.messages(worked))] if worked else []
    mapped = [ContextPart(name=PROJECT_MAP, tokens=counter.text(project_map))] if project_map else []
    return [
        ContextPart(name="instructions", tokens=counter.text(told)),
        ContextPart(name="context entries", tokens=counter.text(entries.replace(project_map, ""))),
        *mapped,
        ContextPart(name="tool schemas", tokens=counter.schemas(tools) + counter.text(listed)),
        *shown,
        ContextPart(name="checkpoints", tokens=prompt.budget().checkpoints),
        *(ContextPart(name=f"{role} messages", tokens=tokens) for role, tokens in by_role.items()),
    ]


def _project_map(prompt: Prompt) -> str:
    """The part of the system prompt that maps the project, if it has one."""
    text = render([entry for entry in prompt.entries.standing() if entry.key == PROJECT_MAP])
    return text if text in prompt.system_prompt() else ""
