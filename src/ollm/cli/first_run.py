"""The first question: where is your model? On a server that was found or is named, or a small one to download."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from ollm.app.process import ProcessScope
from ollm.cli.models import download_model, format_size
from ollm.cli.options import warn, wrap_for_terminal
from ollm.config.change import set_setting
from ollm.domain.errors import OllmError
from ollm.domain.text import format_count
from ollm.providers.local_models.model_files import CATALOGUE, NoModelError
from ollm.system.terminal_text import clean_lines, make_printable

FIRST_MODELS = ("qwen2.5-coder-1.5b", "smollm2")
OWN_SERVER = "my server is at … (type its URL, such as http://gpu-box:8000/v1)"
Flags = dict[str, Any]


def offer_model(error: OllmError, flags: Flags) -> Flags | None:
    """Ask for a model if there is none. Returns the flags to try again with, or None. Without a terminal, the error
    names what to type."""
    if not isinstance(error, NoModelError) or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    process = ProcessScope(flags=flags, warn=lambda _: None)
    servers = asyncio.run(find_servers(process))
    names = (*FIRST_MODELS, error.model)
    models = sorted(
        (model for model in CATALOGUE if error.model and model.name in names), key=lambda model: -model.size
    )
    lines = [f"{label} at {url}" for url, label in servers.items()]
    lines += [OWN_SERVER, *(model.about.replace(":", f", {format_size(model.size)}:", 1) for model in models)]
    warn(f"{error.message} What do you want to use?")
    for number, line in (*enumerate(lines, start=1), ("n", "nothing now")):
        print(wrap_for_terminal(f"  {number}  {line}"), file=sys.stderr)
    while (answer := ask("Number or URL")).lower() not in ("n", "no", "q"):
        number = int(answer) - 1 if answer.isdecimal() else -1
        if len(servers) < number < len(lines):
            download_model(process.model_store, models[number - len(servers) - 1])
            return flags
        url = [*servers, ""][number] if 0 <= number <= len(servers) else answer if set(":/.") & set(answer) else None
        if url is not None and (found := use_server(process, flags, url or ask("URL"))):
            return found
    return None


async def find_servers(process: ProcessScope) -> dict[str, str]:
    found = await process.providers.discover()
    for server in found:
        await server.provider.close()
    return {one.place.url: f"{one.place.label} ({format_count(len(one.models), 'model')})" for one in found}


def ask(question: str) -> str:
    return str(click.prompt(question, err=True)).strip()


def use_server(process: ProcessScope, flags: Flags, url: str) -> Flags | None:
    """Try a server, and save its URL if it has a model. Returns the flags that use it."""
    url = url if "://" in url else f"http://{url}"
    try:
        kind = asyncio.run(process.providers.detect_kind(url))
        flags = {**flags, "provider": {**flags.get("provider", {}), "type": kind, "baseUrl": url}}
        model = asyncio.run(find_model(ProcessScope(flags=flags, warn=lambda _: None)))
        file = set_setting(process.home, "provider.baseUrl", url)
        if process.settings.provider.type:
            set_setting(process.home, "provider.type", kind)
    except OllmError as error:
        warn(clean_lines(error.message))
        return None
    warn(f"{make_printable(model)} answers. Saved provider.baseUrl in {file}.")
    return flags


async def find_model(process: ProcessScope) -> str:
    choice = await process.providers.choose()
    await choice.provider.close()
    return choice.model
