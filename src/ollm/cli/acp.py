"""`ollm acp`: serves editors that use the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import sys

import click

from ollm.acp.connection import claim_stdout, serve_editor
from ollm.app.process import ProcessScope
from ollm.cli.start import build_settings_flags


@click.command()
@click.option("--provider", metavar="TYPE", help="Model server type.")
@click.option("--base-url", metavar="URL", help="Address of the model server.")
@click.option("-m", "--model", metavar="NAME", help="Model to use.")
@click.option(
    "--approval", type=click.Choice(["read-only", "ask", "accept-edits", "yolo"]), help="What runs without asking."
)
def acp(**options: str | None) -> None:
    """Serve an editor over the Agent Client Protocol.

    Editors start this command themselves: see docs/editors.md. It reads and writes JSON on standard input and output.
    """
    flags = build_settings_flags(options)
    if sys.stdin is not None and sys.stdin.isatty():
        print("ollm acp waits for an editor: see docs/editors.md. Ctrl-C ends it.", file=sys.stderr)
    asyncio.run(serve_editor(ProcessScope(flags=flags), flags, 0, claim_stdout()))
