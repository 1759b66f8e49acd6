"""`ollm env`: which variables tools get (S7)."""

from __future__ import annotations

import click

from ollm.cli.options import json_option, print_json, print_table, resolve_workspace, warn, workspace_option


@click.group()
def env() -> None:
    """Show which environment variables tools get."""


@env.command()
@workspace_option
@json_option
def check(workspace: str | None, as_json: bool) -> None:
    """List the variables tools get, and why others are withheld. Names only, never a value."""
    from ollm.app import ProcessScope

    process = ProcessScope(workspace=resolve_workspace(workspace))
    for warning in process.sanitization.warnings:
        warn(warning)
    found = process.sanitization.classify_variables(process.environment)
    if as_json:
        print_json({"passed": found.passed, "removed": found.removed})
        return
    rows = [(name, "passed") for name in found.passed]
    rows += [(item.name, f"withheld: {item.rule}") for item in found.removed]
    print_table(["variable", "result"], rows)
