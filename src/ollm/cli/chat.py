"""`ollm chat` and `ollm -p`: the same conversation, with a screen or without one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ollm.domain.errors import NoServerError, UsageError

if TYPE_CHECKING:
    from ollm.cli.start import Start

APPROVALS = ("read-only", "ask", "accept-edits", "yolo")
MODES = ("assistant", "plan", "code", "debug")


@click.command()
@click.option("-p", "--prompt", "prompt", metavar="TEXT|-", help="One turn without a screen; - reads stdin.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "stream-json"]), default="text", help="Form of -p.")
@click.option("--new", is_flag=True, help="Start a new session without asking.")
@click.option("--session", "session", metavar="ID", help="Resume this session (4 characters of its id suffice).")
@click.option("--continue", "continue_", is_flag=True, help="Resume the newest session of the workspace.")
@click.option("--full", is_flag=True, help="Resume with everything from the archive that fits.")
@click.option("--force", is_flag=True, help="Ask whoever holds the workspace to close, and take over.")
@click.option("--workspace", type=click.Path(path_type=Path), help="The project; default: where you stand.")
@click.option("--provider", type=click.Choice(["ollama", "openai", "embedded"]), help="Kind of model server.")
@click.option("--base-url", metavar="URL", help="Address of the model server.")
@click.option("--model", metavar="NAME", help="Model to talk to.")
@click.option("--mode", type=click.Choice(MODES), help="What the agent is for.")
@click.option("--approval", type=click.Choice(APPROVALS), help="What runs without a question.")
@click.option("--allow", multiple=True, metavar="GRANT", help="Allow a tool, or one use of it: 'shell:npm run test'.")
@click.option("--yes", is_flag=True, help="Answer every question with yes, but those about protected files.")
@click.option("--daemon", is_flag=True, help="Talk through the daemon; started when it is not running.")
def chat(**options: Any) -> None:
    """Talk to a model about the project you stand in.

    Without -p this opens the chat; with -p TEXT it answers once and ends. Piped input is attached to TEXT.
    """
    from ollm.cli.start import Start

    start = Start.from_options(options)
    prompt: str | None = options["prompt"]
    if prompt is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        prompt = "-"
    if prompt is not None and start.daemon:
        raise UsageError("--daemon goes with the chat on a terminal.", action="Leave it out for a single turn.")
    run = _run(start, prompt, options["output"])
    try:
        code = run()
    except NoServerError as error:
        from ollm.cli.fetching import fetched

        if not fetched(error, start.flags):
            raise
        code = run()
    sys.exit(code)


def _run(start: Start, prompt: str | None, output: str) -> Callable[[], int]:
    if prompt is None:
        from ollm.cli.terminal import talk

        return lambda: talk(start)
    from ollm.cli.oneshot import ask_once

    asked = question(prompt)
    return lambda: ask_once(start, asked, output)


def question(prompt: str) -> tuple[str, str]:
    """The text, and what was piped in beside it."""
    if prompt == "-":
        text = read_stdin()
        if not text.strip():
            raise UsageError("Nothing was said.", action="Give a text: ollm -p 'explain this repository'.")
        return text, ""
    return prompt, "" if sys.stdin is None or sys.stdin.isatty() else read_stdin()


def read_stdin() -> str:
    return sys.stdin.buffer.read().decode("utf-8", errors="replace") if sys.stdin else ""
