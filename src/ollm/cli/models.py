"""`ollm models`, and the download of a model file that a chat needs."""

from __future__ import annotations

import asyncio
import time
from importlib.util import find_spec
from pathlib import Path

import click

from ollm.app.models import change_loaded, collect_models, find_facts, import_card
from ollm.app.process import ProcessScope
from ollm.cli.completion import complete_catalogue, complete_model
from ollm.cli.model_card import MARKS, describe_card, describe_faults, run_trials
from ollm.cli.options import confirm_or_fail, format_table, make_progress, print_result, shared_options, warn
from ollm.cli.text_printer import WaitLine
from ollm.domain.model_facts import CARD_FIELDS
from ollm.domain.text import format_seconds
from ollm.providers.base import name_model, name_models
from ollm.providers.local_models.model_files import CatalogueModel, ModelFile
from ollm.providers.local_models.model_store import ModelStore
from ollm.services.compare import describe_results
from ollm.services.model_cards import make_card, read_card
from ollm.store.model_facts import split_facts_key
from ollm.system.install_command import describe_extra_install
from ollm.system.terminal_text import make_printable


def download_model(store: ModelStore, model: CatalogueModel, url: str | None = None) -> ModelFile:
    warn(f"downloading {model.name}" + (f" ({format_size(model.size)})" if model.size else ""))
    show = make_progress("Downloading", "MB")
    return store.get(model, lambda done, total: show(done, total or model.size or done), url=url)


def format_size(size: int | None) -> str:
    return "" if not size else f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


@click.group()
def models() -> None:
    """List, download, remove and test models."""


@models.command("list")
@shared_options("json")
def list_models(as_json: bool) -> None:
    """List model files, models of running servers, and the catalogue."""
    document = asyncio.run(collect_models(ProcessScope(), warn))
    rows = [(m["name"], format_size(m["size"]), "", "embedded", "") for m in document["files"]]
    for server in document["servers"]:
        place = f"{server['label']} at {server['baseUrl']}"
        names = name_models([m["name"] for m in server["models"]])
        rows += [
            (
                name,
                format_size(m["size"]),
                f"{m['window']:,}" if m["window"] else "",
                place,
                m["state"],
            )
            for name, m in zip(names, server["models"], strict=True)
        ]
    rows += [
        (m["name"], format_size(m["size"]), "", f"available: {m['about']}", "")
        for m in document["catalogue"]
        if not m["installed"]
    ]
    print_result(document, format_table(("MODEL", "SIZE", "WINDOW", "WHERE", "STATE"), rows), as_json=as_json)


@models.command()
@click.argument("name", shell_complete=complete_model)
def load(name: str) -> None:
    """Load a model into its server's memory."""
    begun = time.monotonic()
    model, address = asyncio.run(load_model(ProcessScope(), name))
    warn(make_printable(f"Loaded {model} at {address} in {format_seconds(time.monotonic() - begun)}."))


async def load_model(process: ProcessScope, name: str) -> tuple[str, str]:
    with WaitLine(f"loading {name}"):
        return await change_loaded(process, name, load=True)


@models.command()
@click.argument("name", shell_complete=complete_model)
def unload(name: str) -> None:
    """Remove a model from its server's memory."""
    model, address = asyncio.run(change_loaded(ProcessScope(), name, load=False))
    warn(make_printable(f"Unloaded {model} at {address}."))


@models.command()
@click.argument("name", shell_complete=complete_catalogue)
@click.option("--url", help="Download URL (default: models.urls or the package index).")
@click.option("--sha256", metavar="HASH", help="Expected SHA-256; required for models outside the catalogue.")
@click.option("--if-missing", is_flag=True, help="Print nothing if it is already installed.")
def get(name: str, url: str | None, sha256: str | None, if_missing: bool) -> None:
    """Download a model (resumable)."""
    store = ProcessScope().model_store
    if here := store.find_installed(name):
        if not if_missing:
            warn(f"{name} is already installed: {here.path}")
        return
    if find_spec("xllamacpp") is None:
        warn(f"Running it needs an extra: {describe_extra_install('embedded')}.")
    file = download_model(store, store.resolve_model(name, url=url, sha256=sha256), url)
    warn(f"Downloaded {name} ({format_size(file.size)}), checksum verified: {file.path}")


@models.command()
@click.argument("name", shell_complete=complete_catalogue)
@shared_options("yes")
def remove(name: str, yes: bool) -> None:
    """Delete a model file."""
    store = ProcessScope().model_store
    here = store.find_installed(name)
    if here is not None:
        confirm_or_fail(f"Remove {here.path} ({format_size(here.size)})?", yes)
    removed = store.remove(name)
    warn(f"Removed {removed.name}.")


@models.command()
@click.argument("model", required=False, shell_complete=complete_model)
@shared_options("json")
def probe(model: str | None, as_json: bool) -> None:
    """Measure what a model and its server can do (minutes).

    The results are saved and used from then on. Default: the current model.
    """
    card = asyncio.run(run_trials(ProcessScope(), model))
    rows = [(trial.name, MARKS[trial.ok], trial.told, f"{trial.seconds:.1f}") for trial in card.trials]
    head = f"{make_printable(name_model(card.model))}, probed {card.facts.probed}\n"
    table = format_table(("TRIAL", "", "FOUND", "SECONDS"), rows)
    print_result(card, "\n".join((head + table, *map(make_printable, describe_faults(card.trials)))), as_json=as_json)


@models.command("card")
@click.argument("name", shell_complete=complete_model)
@shared_options("json")
def show_card(name: str, as_json: bool) -> None:
    """Show what was measured about a model.

    With --json it is a file to share: `ollm models import` reads it. It names no server and no key.
    """
    process = ProcessScope()
    facts = asyncio.run(find_facts(process, name))
    _, address, model = split_facts_key(facts.key)
    compared = (("compared", text) for text in describe_results(process.home.root, model))
    rows = (("model", f"{name} at {address}"), *describe_card(facts), *compared)
    print_result(
        make_card(facts), "\n".join(f"{label:<10}{make_printable(text)}" for label, text in rows), as_json=as_json
    )


@models.command()
@click.argument("name", shell_complete=complete_model)
@click.argument("fact", required=False, type=click.Choice([*CARD_FIELDS]), metavar="[FACT]")
def forget(name: str, fact: str | None) -> None:
    """Forget what was learnt about a model, or one FACT of it.

    FACT is the name of a line of `ollm models card NAME`, such as window or tools.
    """
    process = ProcessScope()
    key = asyncio.run(find_facts(process, name)).key
    forgotten = process.model_facts.forget(key, CARD_FIELDS[fact] if fact else None)
    what = f"{f'the {fact} of ' if fact else ''}{name} at {split_facts_key(key)[1]}"
    warn(f"Forgot {what}." if forgotten else f"Nothing was known about {what}.")


@models.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", shell_complete=complete_model, help="The model's name on your server (default: the card's).")
def import_model_card(file: Path, model: str | None) -> None:
    """Use someone's model card until you measure the model yourself.

    Speeds and the window are not taken over.
    """
    card = read_card(file)
    facts, address = asyncio.run(import_card(ProcessScope(), card, model))
    name = make_printable(model or card.model)
    warn(f"Imported the card of {name} for {address}. `ollm models probe {name}` replaces it.")
    if facts.server != card.facts.get("server"):
        warn(f"It was measured with {card.facts.get('server') or 'another server'}: only facts of the model are used.")


@models.command()
@click.argument("model", metavar="[NAME|FILE.gguf]", required=False, shell_complete=complete_model)
@shared_options("json")
def fit(model: str | None, as_json: bool) -> None:
    """Show which quant and window fit this machine.

    Speeds are estimates. Default: all models that `ollm models list` finds here.
    """
    from ollm.cli.fit import print_fit

    print_fit(model, as_json=as_json)
