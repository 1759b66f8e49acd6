"""`ollm env`: the variables passed to tools (S7); `ollm redact`: text as the log would contain it (S10.7)."""

from __future__ import annotations

import sys

import click

from ollm.app import ProcessScope
from ollm.cli.options import format_table, json_option, print_result, resolve_workspace, warn, workspace_option
from ollm.domain.errors import NotFoundError, StorageError


@click.group()
def env() -> None:
    """Show which environment variables tools get."""


@env.command()
@workspace_option
@json_option
def check(workspace: str | None, as_json: bool) -> None:
    """List the variables tools get, and why others are withheld. Names only, never a value."""
    process = ProcessScope(workspace=resolve_workspace(workspace))
    for warning in process.sanitization.warnings:
        warn(warning)
    rules = sorted(process.sanitization.find_rules(process.environment).items())
    passed = [name for name, rule in rules if rule is None]
    rows = [(name, "passed") for name in passed]
    rows += [(name, f"withheld: {rule}") for name, rule in rules if rule]
    document = {"passed": passed, "removed": [{"name": name, "rule": rule} for name, rule in rules if rule]}
    print_result(document, format_table(("variable", "result"), rows), as_json=as_json)


@click.command()
@click.argument("file", required=False)
def redact(file: str | None) -> None:
    """Print FILE, or stdin, with secrets redacted."""
    redacted = ProcessScope().redactor.redact(_read_text(file))
    sys.stdout.buffer.write(redacted.encode("utf-8", "surrogateescape"))


def _read_text(file: str | None) -> str:
    if file is None or file == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    from pathlib import Path

    try:
        return Path(file).read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError as error:
        raise NotFoundError(f"no such file: {file}.") from error
    except (OSError, ValueError) as error:
        raise StorageError(f"Cannot read {file}: {error}.") from error
