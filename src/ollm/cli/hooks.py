"""`ollm hooks`: list hooks, and import those of Claude Code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ollm.app.process import ProcessScope
from ollm.cli.options import format_table, print_result, shared_options, warn
from ollm.config.change import put_mapping_entry
from ollm.domain.errors import UsageError
from ollm.extensions.hook_settings import read_hooks
from ollm.extensions.mcp.settings import read_foreign_json

SETTINGS_FILES = (".claude/settings.local.json", ".claude/settings.json")


@click.group()
def hooks() -> None:
    """List hooks, and import those of Claude Code."""


@hooks.command("list")
@shared_options("process", "json")
def list_hooks(process: ProcessScope, as_json: bool) -> None:
    """List the hooks that run here."""
    found, problems = read_hooks(process.settings.hooks)
    warn(*problems)
    cells = [
        (hook.event, hook.matcher or ",".join(hook.tools), "required" if hook.required else "", hook.command)
        for hook in found
    ]
    table = format_table(("EVENT", "TOOLS", "", "COMMAND"), cells, "No hooks are configured.")
    print_result(found, table, as_json=as_json)


@hooks.command("import")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@shared_options("workspace")
def import_hooks(files: tuple[Path, ...], workspace: Path) -> None:
    """Copy the hooks of Claude Code into your settings.

    From FILE, or from .claude/settings.json here and in your home directory. The scripts stay where they are. Those of
    your home run outside the sandbox, as they do in Claude Code; those of the workspace inside it.
    """
    process = ProcessScope()
    named = files or tuple(root / name for root in (workspace, Path.home()) for name in SETTINGS_FILES)
    found = collect_hooks([file for file in named if files or file.is_file()], workspace)
    if not found:
        raise UsageError("No hooks were found.", action="Name the settings file: ollm hooks import FILE.")
    for event, entries in found.items():
        if not (entries := drop_unusable_hooks(event, entries)):
            continue
        kept = process.settings.hooks.get(event) or []
        before = list(kept) if isinstance(kept, list | tuple) else [kept]
        file = put_mapping_entry(process.home, "hooks", event, [*before, *(e for e in entries if e not in before)])
        free = " They run outside the sandbox (`sandbox: off`)." if "'sandbox': 'off'" in str(entries) else ""
        print(f"{event}: {len(entries)} imported into {file}.{free}")


def drop_unusable_hooks(event: str, entries: list[Any]) -> list[Any]:
    """Keep the hooks that can run here, and report the others now instead of at every start."""
    problems = [read_hooks({event: [entry]})[1] for entry in entries]
    warn(*dict.fromkeys(f"{problem}; not imported" for found in problems for problem in found))
    return [entry for entry, found in zip(entries, problems, strict=True) if not found]


def split_entry(entry: Any, *, boxed: bool) -> list[Any]:
    """Return an entry for each of its hooks, which run outside the sandbox unless `boxed`."""
    if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
        return [{**entry, "hooks": split_entry(hook, boxed=boxed)} for hook in entry["hooks"]]
    return [{"sandbox": "off", **entry} if not boxed and isinstance(entry, dict) and "command" in entry else entry]


def collect_hooks(files: list[Path], workspace: Path) -> dict[str, list[Any]]:
    """Collect the `hooks` of all files by event. Only hooks from outside the workspace run unsandboxed."""
    found: dict[str, list[Any]] = {}
    for file in files:
        document = read_foreign_json(file)
        boxed = file.resolve().is_relative_to(workspace.resolve())
        listed = document.get("hooks") if isinstance(document, dict) else None
        for event, entries in listed.items() if isinstance(listed, dict) else ():
            for entry in entries if isinstance(entries, list) else [entries]:
                found.setdefault(event, []).extend(split_entry(entry, boxed=boxed))
    return found
