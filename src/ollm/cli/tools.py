"""`ollm tools`: list tools, or run one under a model call's policy and limits; `ollm skills`: list skills."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from ollm.app.process import ProcessScope
from ollm.app.toolbox import create_tool_registry, run_tool_call, serialize_tools
from ollm.cli.completion import complete_tool
from ollm.cli.options import format_table, parse_json, print_json, print_result, shared_options, warn
from ollm.cli.start import check_grants
from ollm.domain.errors import ExitCode, UsageError
from ollm.domain.events import Event, Notice
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.base import ConversationOptions
from ollm.runtime.prompt.project_context import find_skills
from ollm.system.terminal_text import escape_controls, make_printable


@click.group()
def tools() -> None:
    """List the tools, or run one."""


@tools.command("list")
@shared_options("workspace", "json")
def list_tools(workspace: Path, as_json: bool) -> None:
    """List every tool with its risk and description."""
    specs = create_tool_registry(workspace).list()
    rows = [(spec.name, spec.risk, spec.description) for spec in specs]
    print_result(serialize_tools(specs), format_table(("TOOL", "RISK", "DESCRIPTION"), rows), as_json=as_json)


@tools.command("run")
@click.argument("name", shell_complete=complete_tool)
@click.option("--args", "arguments", metavar="JSON", default="{}", help="Arguments as JSON; - reads stdin.")
@click.option("--allow", "grants", metavar="GRANT", multiple=True, help="TOOL or TOOL:TEXT to allow without asking.")
@shared_options("workspace", "yes", "json")
def run_tool(name: str, arguments: str, grants: tuple[str, ...], workspace: Path, yes: bool, as_json: bool) -> int:
    """Run a tool, subject to policy."""
    check_grants(grants)
    options = ConversationOptions(workspace=workspace, grants=grants, yes=yes, one_shot=True)
    try:
        call = ToolCall(
            id="c1", name=name, arguments=parse_json(sys.stdin.read() if arguments == "-" else arguments, "--args")
        )
    except UsageError as error:
        if as_json:
            print_json(serialize_refusal(error))
        raise
    record = asyncio.run(run_tool_call(options, call, _print_notice))
    if as_json:
        print_json(serialize_record(record))
    else:
        _print_record(record)
    codes = {"ok": ExitCode.DONE, "denied": ExitCode.DENIED, "cancelled": ExitCode.INTERRUPTED}
    return codes.get(record.status, ExitCode.FAILED)


def _print_notice(event: Event) -> None:
    if isinstance(event, Notice) and event.level != "info":
        warn(make_printable(event.text))


def serialize_record(record: ToolCallRecord) -> dict[str, Any]:
    result = record.result
    assert result is not None
    return {
        "ok": record.error is None,
        "llmContent": result.llm_content,
        "returnDisplay": result.return_display,
        **({} if result.exit_code is None else {"exitCode": result.exit_code}),
        "error": record.error,
    }


def serialize_refusal(error: UsageError) -> dict[str, Any]:
    """Serialize a refusal of invalid arguments like the result of a call."""
    failure = {"type": "ValidationError", "message": error.message}
    content = f"Error ValidationError: {error.message}"
    return {"ok": False, "llmContent": content, "returnDisplay": error.message, "error": failure}


def _print_record(record: ToolCallRecord) -> None:
    result = record.result
    assert result is not None
    if record.error is not None:
        print(f"ollm: {record.error.type}: {escape_controls(record.error.message)}", file=sys.stderr)
        return
    text = escape_controls(result.return_display if result.diff else result.llm_content)
    print(text, end="" if text.endswith("\n") or not text else "\n")


@click.group()
def skills() -> None:
    """List the skills the agent can read."""


@skills.command("list")
@shared_options("workspace", "json")
def list_skills(workspace: Path, as_json: bool) -> None:
    """List the skills of your home and of a trusted workspace."""
    process = ProcessScope(workspace=workspace)
    theirs = workspace / ".ollm" / "skills"
    if theirs.is_dir() and not process.trusted:
        warn(f"{theirs} is ignored: the workspace is not trusted. Run `ollm trust` to use it.")
    found = find_skills(process.find_directories("skills", workspace), workspace)
    rows = [(skill.name, skill.description, skill.path) for skill in found]
    empty = "No skills. Put one into .ollm/skills/NAME/SKILL.md or ~/.ollm/skills."
    print_result(found, format_table(("SKILL", "DESCRIPTION", "FILE"), rows, empty), as_json=as_json)
