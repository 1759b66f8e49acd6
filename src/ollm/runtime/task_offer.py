"""Runs the agents that the user names with `@agent-NAME`. Their reports go with the message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ollm.domain.events import Notice

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts

MAX_MENTIONED_AGENTS = 3
_MENTION = re.compile(r"(?:^|(?<=[\s(]))@agent-([a-z0-9][a-z0-9_-]{0,63})", re.IGNORECASE)


async def offer_task(parts: ConversationParts, typed: str) -> str:
    """Call the tool `task` for each agent that the user named, and return the reports. Failures are shown as those of
    any call, and the turn continues without that report."""
    if parts.tasks is None:
        return ""
    names = list(dict.fromkeys(name.lower() for name in _MENTION.findall(typed)))
    for name in names[MAX_MENTIONED_AGENTS:]:
        told = f"@agent-{name} was not asked: a message has at most {MAX_MENTIONED_AGENTS} agents."
        parts.stream.emit(Notice(level="warning", text=told))
    prompt, names = _MENTION.sub(r"\1", typed).strip(), names[:MAX_MENTIONED_AGENTS]
    asked = [{"prompt": prompt, "agent": name} for name in names]
    done = await parts.dispatch.get().run_unrecorded("task", *asked) if asked else ()
    return "\n\n".join(
        f"[Report of agent {name}:]\n{record.result.llm_content}"
        for name, record in zip(names, done, strict=True)
        if record.result and not record.error
    )
