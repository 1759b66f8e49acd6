"""`ollm skills`: list the skills offered to the model."""

from __future__ import annotations

import click

from ollm.cli.options import json_option, print_json, print_table, resolve_workspace, warn, workspace_option


@click.group()
def skills() -> None:
    """List the skills the agent can read."""


@skills.command("list")
@workspace_option
@json_option
def list_skills(workspace: str | None, as_json: bool) -> None:
    """List the skills of your home and of a trusted workspace."""
    from ollm.app import ProcessScope
    from ollm.runtime.prompt.project_context import find_skills

    root = resolve_workspace(workspace)
    process = ProcessScope(workspace=root)
    theirs = root / ".ollm" / "skills"
    if theirs.is_dir() and not process.trusted:
        warn(f"{theirs} is ignored: the workspace is not trusted. Run `ollm trust` to use it.")
    found = find_skills([*([theirs] if process.trusted else []), process.home.skills], root)
    if as_json:
        print_json(found)
    elif found:
        print_table(("SKILL", "DESCRIPTION", "FILE"), [(skill.name, skill.description, skill.path) for skill in found])
    else:
        warn("no skills. Put one into .ollm/skills/NAME/SKILL.md or ~/.ollm/skills.")
