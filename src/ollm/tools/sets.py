"""Which tools a model is shown: those of its mode, as many as fit, so that a small one is not lost in them."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.context import ModeName
from ollm.domain.tools import ToolSchema
from ollm.services.modes import OURS, tools_for
from ollm.services.token_counting import TokenCounter

LEAST, MOST = 5, 10
TOKENS = 1_500
SHARE = 0.15

# The most needed first: where the window is small the end of the line is left out.
_ORDER: dict[ModeName, tuple[str, ...]] = {
    "code": ("read_file", "edit_file", "write_file", "shell", "grep", "glob", "recall", "write_todos"),
    "debug": ("read_file", "shell", "grep", "edit_file", "write_file", "glob", "recall", "write_todos"),
    "plan": ("read_file", "grep", "glob", "ls", "write_todos", "recall", "read_many_files", "web_search", "web_fetch"),
    "assistant": (
        "read_file",
        "grep",
        "glob",
        "web_search",
        "web_fetch",
        "recall",
        "ls",
        "memory",
        "read_many_files",
    ),
}


def tool_set(mode: ModeName, schemas: Sequence[ToolSchema], window: int) -> tuple[ToolSchema, ...]:
    """The tools of a mode by name: at least five and at most ten of ours, under 1,500 tokens and 15 % of the window;
    those that extensions bring come after the first five, as far as that share goes. A tool that is not shown can
    still be called."""
    by_name = {schema.name: schema for schema in schemas}
    counter = TokenCounter()  # not the model's own: what is shown must not change with what is learnt of it
    cost = {name: counter.schemas([schema]) for name, schema in by_name.items()}
    allowed = tools_for(mode, by_name)
    ours = [name for name in _ORDER[mode] if name in allowed]
    theirs = [name for name in allowed if name not in OURS]
    room, own_room = SHARE * window, min(TOKENS, SHARE * window)
    shown: list[str] = []
    for name in [*ours[:LEAST], *theirs, *ours[LEAST:]]:
        limit = room if name in theirs else own_room
        used = sum(cost[other] for other in shown if name in theirs or other not in theirs)
        if len(shown) < LEAST or (used + cost[name] <= limit and len(shown) < MOST + len(theirs)):
            shown.append(name)
    return tuple(by_name[name] for name in sorted(shown))
