"""`ollm context show`: the model's prompt, part by part."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from ollm.app.closed_session import ClosedSession
from ollm.app.process import ProcessScope
from ollm.cli.options import format_table, print_result, shared_options, warn
from ollm.cli.sessions.view import resolve_session_id, warn_damage
from ollm.domain.errors import NotFoundError
from ollm.domain.session import Session
from ollm.providers.base import name_model
from ollm.providers.request_settings import find_model_settings, format_settings, list_request_settings
from ollm.runtime.prompt.breakdown import (
    count_hidden_tools,
    describe_hidden_tools,
    list_context_parts,
    list_entry_names,
)
from ollm.runtime.prompt.prompt import Prompt

BAR_CELLS = 30


@click.group()
def context() -> None:
    """Show what is sent to the model."""


@context.command()
@shared_options("session", "workspace", "json")
def show(session: str | None, workspace: Path, as_json: bool) -> None:
    """Print every part of the next prompt, with its tokens.

    Without ID, for the newest session of the workspace.
    """
    process = ProcessScope(workspace=workspace)
    prompt = asyncio.run(_build_prompt(ClosedSession(process, workspace), _load_session(process, session, workspace)))
    budget, hidden = prompt.compute_budget(), count_hidden_tools(prompt)
    numbers = {name: getattr(budget, name) for name in ("window", "limit", "available", "trigger")}
    settings = list_request_settings(find_model_settings(process.settings.models, prompt.model.model))
    document = {**numbers, "parts": list_context_parts(prompt), **({"hiddenTools": hidden} if hidden else {})}
    lines = [*_describe_prompt(prompt)]
    if settings:
        document["requestSettings"] = settings
        lines.append(f"Sent with every request to {name_model(prompt.model.model)}: {format_settings(settings)}.")
    print_result(document, "\n".join(lines), as_json=as_json)


async def _build_prompt(closed: ClosedSession, session: Session | None) -> Prompt:
    return closed.build_next_prompt(session, None if session else await closed.choose_model())


def _load_session(process: ProcessScope, session: str | None, workspace: Path) -> Session | None:
    try:
        loaded = process.session_files.read(resolve_session_id(process, session, workspace))
    except NotFoundError as error:
        if session:
            raise
        warn(f"{error.message} Showing what a new session starts with.")
        return None
    warn_damage(loaded.damage)
    return loaded.session


def _describe_prompt(prompt: Prompt) -> Iterator[str]:
    budget, parts = prompt.compute_budget(), list_context_parts(prompt)
    widest = max(part.tokens for part in parts) or 1
    rows = [(part.name, part.tokens, "█" * round(BAR_CELLS * part.tokens / widest)) for part in parts]
    yield format_table(("part", "tokens", ""), rows)
    used = prompt.used_tokens
    filled = min(BAR_CELLS, round(BAR_CELLS * used / max(1, budget.limit)))
    bar = "█" * filled + "·" * (BAR_CELLS - filled)
    yield f"\n[{bar}] {used:,} of {budget.limit:,} tokens (context window {budget.window:,})"
    yield (f"Compaction starts when messages exceed {budget.trigger:,} of {budget.available:,} tokens.")
    if names := list_entry_names(prompt):
        yield f"Context entries: {', '.join(names)}."
    if hidden := describe_hidden_tools(prompt):
        yield hidden
