"""What `ollm chat` and `ollm -p` do, once their options are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ollm.cli.start import ChatArguments, Question
from ollm.domain.errors import NoServerError, UsageError


def run_chat(options: Mapping[str, Any]) -> int:
    """Talk, with a screen or without one; the exit code."""
    start = ChatArguments.from_options(options)
    prompt: str | None = options["prompt"]
    if prompt is not None and start.text:
        raise UsageError(
            f"-p already has a prompt; {start.text[:40]!r} is a second one.", action="Quote it as one text."
        )
    if prompt is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        prompt = start.text or "-"
    if prompt is not None and start.daemon:
        raise UsageError("--daemon needs the interactive chat.", action="Drop it when you use -p.")
    run = _prepare_run(start, prompt, options["output"])
    try:
        return run()
    except NoServerError as error:
        from ollm.cli.model_download import offer_missing_model

        if not offer_missing_model(error, start.flags):
            raise
        return run()


def _prepare_run(start: ChatArguments, prompt: str | None, output: str) -> Callable[[], int]:
    if prompt is None:
        from ollm.cli.terminal import run_terminal_chat as on_screen

        return lambda: on_screen(start)
    from ollm.cli.oneshot import ask_once

    asked = read_question(prompt)
    return lambda: ask_once(start, asked, output)


def read_question(prompt: str) -> Question:
    """The text, and what was piped in beside it."""
    if prompt == "-":
        text = read_stdin()
        if not text.strip():
            raise UsageError("The prompt is empty.", action="Give a prompt: ollm -p 'explain this repository'.")
        return Question(text=text, typed=False)
    piped = "" if sys.stdin is None or sys.stdin.isatty() else read_stdin()
    if not prompt.strip():
        if not piped.strip():
            raise UsageError("The prompt is empty.", action="Give a prompt: ollm -p 'explain this repository'.")
        return Question(text=piped, typed=False)
    return Question(text=prompt, piped=piped)


def read_stdin() -> str:
    return sys.stdin.buffer.read().decode("utf-8", errors="replace") if sys.stdin else ""
