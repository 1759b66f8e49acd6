"""`ollm doctor`: what was found, why, and the one next thing to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ollm.app import ProcessScope
from ollm.cli.options import json_option, print_json, resolve_workspace, workspace_option
from ollm.domain.text import format_count

if TYPE_CHECKING:
    from ollm.cli.diagnosis import Diagnosis
    from ollm.domain.errors import OllmError
    from ollm.domain.model_facts import ModelFacts

MAX_DISK_ROWS = 8
LABEL_CELLS = 10
MIN_ROW_CELLS = 30
COPIED_ROWS = ("ollama", "llama.cpp")  # commands


@click.command()
@click.option("--clean", is_flag=True, help="Delete what package managers and servers keep in the sandbox.")
@click.option("--measure", is_flag=True, help="Also measure the model's speed with a short request.")
@workspace_option
@json_option
def doctor(clean: bool, measure: bool, workspace: str | None, as_json: bool) -> int:
    """Check your setup: which model is used and why, what is missing, and what to do next."""
    import asyncio

    from ollm.system.terminal_text import make_printable

    process = ProcessScope(workspace=resolve_workspace(workspace))
    if clean:
        from ollm.system.sandbox.caches import clean_cache
        from ollm.tools.ls import format_size

        removed = clean_cache(process.home.cache / "box")
        print_json({"removed": removed}) if as_json else print(f"Deleted {format_size(removed)}.")
        return 0
    diagnosis, error = asyncio.run(_diagnose_visibly(process, measured=measure))
    if as_json:
        import msgspec

        document = msgspec.to_builtins(diagnosis, enc_hook=str)
        print_json({"ok": error is None, **document})
    else:
        for name, text in _describe_diagnosis(diagnosis):
            print(_wrap_row(name, make_printable(text)))
    return error.exit_code if error else 0


async def _diagnose_visibly(process: ProcessScope, *, measured: bool) -> tuple[Diagnosis, OllmError | None]:
    """With a line that counts the seconds, where a person looks on."""
    from ollm.cli.diagnosis import diagnose
    from ollm.cli.text_printer import WaitLine, is_seen

    line = WaitLine("asking the model server") if is_seen() else None
    try:
        return await diagnose(process, measured=measured)
    finally:
        if line:
            line.stop()


def _wrap_row(name: str, text: str) -> str:
    """A sentence is broken between words where the terminal is narrow; what is copied or read by a program is not."""
    label = f"{name:<{LABEL_CELLS}}"
    if name in COPIED_ROWS or not text or text[0] == " " or not sys.stdout.isatty():
        return label + text
    import shutil
    import textwrap

    width = max(MIN_ROW_CELLS, shutil.get_terminal_size().columns - 1)
    return textwrap.fill(
        text,
        width,
        initial_indent=label,
        subsequent_indent=" " * LABEL_CELLS,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _describe_diagnosis(found: Diagnosis) -> Iterator[tuple[str, str]]:
    from ollm.tools.ls import format_size

    if found.server is not None:
        server = found.server
        yield "server", f"{server.type} at {server.base_url}: {server.why}"
        yield "model", server.model
        yield "window", f"{server.window} tokens: {server.window_why}"
        yield "", f"serving: {server.served or 'unknown'}, trained for: {server.trained or 'unknown'}"
    if found.error:
        yield "server", found.error
    for answering in found.answering:
        if found.server is None or answering.base_url != found.server.base_url:
            count = len(answering.models)
            yield "also", f"{answering.label} at {answering.base_url}, {format_count(count, 'model')}"
    if found.facts is not None:
        yield "calls", _describe_calls(found.facts)
        yield "speed", _describe_speed(found.facts)
    yield "machine", found.hardware.describe()
    yield from found.models.items()
    yield "sandbox", found.sandbox
    yield from _describe_box(found)
    yield "here", ", ".join(check.name for check in found.machine if check.ok)
    for check in found.machine:
        if not check.ok:
            yield "missing", f"{check.name}: {check.detail}"
    for problem in found.problems:
        yield "config", problem
    yield "log", f"{found.log} ({format_size(found.log_bytes)})"
    yield "disk", f"{found.home}: {format_size(sum(part.bytes for part in found.disk))}"
    if found.home_problem:
        yield "", f"cannot be written: {found.home_problem}"
    small = [part for part in found.disk[MAX_DISK_ROWS:] if part.name == "checkpoints"]
    for part in (*found.disk[:MAX_DISK_ROWS], *small):
        yield "", f"{format_size(part.bytes):>10}  {part.name}"
    yield "next", found.next


def _describe_box(found: Diagnosis) -> Iterator[tuple[str, str]]:
    from ollm.tools.ls import format_size

    if found.visible:
        yield "", f"programs in it see of your home: {', '.join(found.visible)} (sandbox.readable adds to it)"
    if kept := found.box_cache:
        yield "", f"they keep {format_size(kept)} of downloads (`ollm doctor --clean` deletes them)"


def _describe_calls(facts: ModelFacts) -> str:
    known = {
        "unknown": "unknown until first use",
        "native": "native",
        "blocks": "in blocks: fenced commands and files",
        "text": "written as text, which ollm parses",
        "constrained": "constrained to the tools' schema",
        "none": "none: the model does not call tools",
    }
    results = "; results are sent as user messages" if facts.result_form == "user" else ""
    return known[facts.call_form] + results


def _describe_speed(facts: ModelFacts) -> str:
    if facts.prefill_per_second is None and facts.decode_per_second is None:
        return "not measured; run `ollm doctor --measure`"
    read, write = facts.prefill_per_second, facts.decode_per_second
    return f"prompt: {read if read is not None else '?'} tok/s, output: {write if write is not None else '?'} tok/s"
