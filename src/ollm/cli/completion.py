"""`ollm completion SHELL`, and the completion of sessions, settings, models and tools."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ollm.app.process import ProcessScope
from ollm.config.settings import Settings
from ollm.config.validation import describe_keys, list_key_choices
from ollm.domain.errors import OllmError
from ollm.domain.text import shorten_ids
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FISH_HELP_FIX = ('string split ","', 'string split --max 1 ","')  # Without the fix, fish cuts help at its first comma.


@click.command(short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for SHELL.

    bash: add `eval "$(ollm completion bash)"` to ~/.bashrc. zsh: the same with zsh in ~/.zshrc. fish: `ollm completion
    fish > ~/.config/fish/completions/ollm.fish`.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(click.get_current_context().find_root().command, {}, "ollm", "_OLLM_COMPLETE").source()
    print(script.replace(*FISH_HELP_FIX))


MAX_ITEMS = 100
LIST_SECONDS = 0.5
SERVER_SECONDS = 1.0
HELP_CHARACTERS = 80
Offer = Iterable[tuple[str, str]]
Completer = Callable[["click.Context", "click.Parameter", str], list["CompletionItem"]]


def _complete_from(collect: Callable[[click.Context, str], Offer]) -> Completer:
    """Build a completer of items with the typed prefix. Errors give no items, since a message would disturb."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        with redirect_stderr(io.StringIO()), suppress(OllmError, OSError, TimeoutError):
            found = dict(collect(context, incomplete)).items()
            fitting = [(name, about) for name, about in found if name.startswith(incomplete)][:MAX_ITEMS]
            descriptions = {name: " ".join(make_printable(about).split())[:HELP_CHARACTERS] for name, about in fitting}
            return [CompletionItem(name, help=about) for name, about in descriptions.items()]
        return []

    return complete


@_complete_from
def complete_session(_: click.Context, incomplete: str) -> Offer:
    """Complete sessions, newest first: by short unique id, or by full id if more than that is typed."""
    rows = ProcessScope().session_index.list_sessions(seconds=LIST_SECONDS)
    short = shorten_ids(row["sessionId"] for row in rows)
    for row in rows:
        name = row["sessionId"]
        yield short[name] if short[name].startswith(incomplete) else name, row["title"] or ""


@_complete_from
def complete_setting(_: click.Context, __: str) -> Offer:
    return describe_keys(Settings).items()


@_complete_from
def complete_value(context: click.Context, _: str) -> Offer:
    return [(value, "") for value in list_key_choices(Settings, context.params.get("key") or "")]


@_complete_from
def complete_tool(_: click.Context, __: str) -> Offer:
    from ollm.app.toolbox import create_tool_registry

    return [(spec.name, spec.description) for spec in create_tool_registry(Path.cwd()).list()]


@_complete_from
def complete_model(_: click.Context, __: str) -> Offer:
    """Complete installed models and those of servers that answer at once."""
    return asyncio.run(_collect_models())


async def _collect_models() -> list[tuple[str, str]]:
    from ollm.app.models import collect_models

    document = await asyncio.wait_for(collect_models(ProcessScope(), lambda _: None), SERVER_SECONDS)
    served = [(model["name"], server["label"]) for server in document["servers"] for model in server["models"]]
    return [*served, *((model["name"], "embedded") for model in document["files"])]


@_complete_from
def complete_models(_: click.Context, incomplete: str) -> Offer:
    """Complete the last of several models with commas between them."""
    before, comma, _last = incomplete.rpartition(",")
    return [(before + comma + name, about) for name, about in asyncio.run(_collect_models())]


@_complete_from
def complete_task(_: click.Context, __: str) -> Offer:
    from ollm.services.compare import load_tasks

    return [(name, task.request) for name, task in load_tasks(Path.cwd()).items()]


@_complete_from
def complete_catalogue(_: click.Context, __: str) -> Offer:
    from ollm.providers.local_models.model_files import CATALOGUE

    return [(model.name, model.about) for model in CATALOGUE]
