"""`ollm env`: the variables passed to tools (S7); `ollm redact`: text as the log would contain it (S10.7)."""

from __future__ import annotations

import sys
from typing import BinaryIO

import click

from ollm.app.process import ProcessScope
from ollm.cli.options import format_table, print_result, shared_options, warn


@click.group()
def env() -> None:
    """Show which environment variables tools get."""


@env.command()
@shared_options("process", "json")
def check(process: ProcessScope, as_json: bool) -> None:
    """List the variables tools get, and why others are withheld. Names only, never a value."""
    warn(*process.sanitization.warnings)
    rules = sorted(process.sanitization.find_rules(process.environment).items())
    passed = [name for name, rule in rules if rule is None]
    rows = [(name, "passed") for name in passed]
    rows += [(name, f"withheld: {rule}") for name, rule in rules if rule]
    document = {"passed": passed, "removed": [{"name": name, "rule": rule} for name, rule in rules if rule]}
    print_result(document, format_table(("variable", "result"), rows), as_json=as_json)


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
def redact(file: BinaryIO) -> None:
    """Print FILE, or stdin, with secrets redacted."""
    redacted = ProcessScope().redactor.redact(file.read().decode("utf-8", "surrogateescape"))
    sys.stdout.buffer.write(redacted.encode("utf-8", "surrogateescape"))
