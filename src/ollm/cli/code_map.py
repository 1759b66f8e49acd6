"""`ollm files outline` and `ollm files map`: what the code defines, as the tool `outline` shows it to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ollm.cli.options import json_option, print_json, workspace_option
from ollm.domain.errors import OllmError
from ollm.system.terminal_text import clean_lines

tokens_option = click.option(
    "--tokens", metavar="N", type=click.IntRange(min=1), help="Maximum tokens (default: codeMap.maxTokens)."
)


@click.command("outline")
@click.argument("path")
@tokens_option
@workspace_option
@json_option
def show_outline(path: str, tokens: int | None, workspace: str | None, as_json: bool) -> None:
    """Show the classes and functions of the file PATH with their line numbers; of a directory, its map."""
    _show({"path": path, **({"maxTokens": tokens} if tokens else {})}, workspace, as_json=as_json)


@click.command("map")
@click.argument("directory", metavar="[DIR]", default=".")
@click.option("--for", "about", metavar="TEXT", default="", help="Rank the files for this question.")
@tokens_option
@workspace_option
@json_option
def show_map(directory: str, about: str, tokens: int | None, workspace: str | None, as_json: bool) -> None:
    """Show the definitions in DIR (default: the workspace) that other files use most, within a budget of tokens."""
    arguments = {"path": directory, "about": about, **({"maxTokens": tokens} if tokens else {})}
    _show(arguments, workspace, as_json=as_json)


def _show(arguments: dict[str, Any], workspace: str | None, *, as_json: bool) -> None:
    """By the same tool, policy and limits as a model's call; where a person would be asked, they just did."""
    import asyncio

    from ollm.app import run_tool_call
    from ollm.cli.options import resolve_workspace
    from ollm.domain.messages import ToolCall
    from ollm.runtime.conversation_options import ConversationOptions

    options = ConversationOptions(
        workspace=resolve_workspace(workspace),
        grants=("outline",),
        yes=True,
        one_shot=True,
        flags={"tools": {"output": {"maxChars": 10_000_000, "maxLines": 1_000_000}}},
    )
    call = ToolCall(id="c1", name="outline", arguments=arguments)
    record = asyncio.run(run_tool_call(options, call, lambda _event: None))
    if record.error is not None:
        raise OllmError(record.error.message, action=_advise(record.error.type, arguments["path"], options.workspace))
    text = record.result.llm_content if record.result else ""
    if as_json:
        print_json({"path": arguments["path"], "text": text})
    else:
        print(clean_lines(text))


def _advise(kind: str, path: str, workspace: Path) -> str:
    """What to do about an outline that was refused: the file is elsewhere, or may hold secrets."""
    if kind not in ("Denied", "OutsideWorkspace"):
        return ""
    if (workspace / path).resolve().is_relative_to(workspace.resolve()):
        return "Open it yourself: files that may hold secrets are not outlined."
    return "Name the directory it is in with --workspace."
