"""Tasks: work that a conversation hands to one of its own, and the report that comes back."""

from __future__ import annotations

from ollm.domain.context import ModeName
from ollm.domain.struct import Data


class ParentCall(Data, frozen=True):
    """The call a child conversation was begun by; no call where the product began it itself."""

    session_id: str
    call_id: str | None = None


class TaskRequest(Data, frozen=True):
    """A task to investigate or do something."""

    prompt: str
    files: tuple[str, ...] = ()
    agent: str = ""
    call_id: str | None = None


class TaskReport(Data, frozen=True):
    """Outcome of a task. `problem` says why it ended early; `files` are those it looked at."""

    text: str
    session_id: str
    steps: int
    files: tuple[str, ...] = ()
    problem: str = ""


class Agent(Data, frozen=True):
    """A kind of worker somebody defined in `.ollm/agents/NAME.md`. Without `tools` it has all of its mode."""

    name: str
    description: str
    instructions: str
    mode: ModeName = "plan"
    model: str = ""
    tools: tuple[str, ...] = ()


class AgentListing(Data, frozen=True):
    """An agent as people see it in a list; `problem` says why it cannot be used."""

    name: str
    description: str = ""
    mode: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    problem: str = ""
