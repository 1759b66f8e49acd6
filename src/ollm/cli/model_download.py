"""Fetching a model file on the command line: a bar on stderr, and the question before it where nobody asked for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ollm.cli.table import warn, wrap_for_terminal
from ollm.domain.errors import NoServerError
from ollm.providers.local_models.downloads import Progress
from ollm.providers.local_models.model_files import CatalogueModel, ModelFile, ModelFileMissingError
from ollm.providers.local_models.model_store import ModelStore


def download_model(store: ModelStore, model: CatalogueModel, url: str | None = None) -> ModelFile:
    """Fetch with progress on stderr."""
    with show_progress(model.name, model.size) as tell:
        return store.get(model, tell, url=url)


def offer_missing_model(error: NoServerError, flags: Mapping[str, Any]) -> bool:
    """Whether the model file that was missing is here now, after a question."""
    if not isinstance(error, ModelFileMissingError):
        return False
    from ollm.app import ProcessScope

    return offer_download(ProcessScope(flags=flags).model_store, error)


def offer_download(store: ModelStore, missing: ModelFileMissingError) -> bool:
    """Ask whether to fetch the missing model, and do it. False without a terminal: the error says what to type."""
    import click

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    model = store.resolve_model(missing.model)
    warn(missing.message)
    try:
        question = f"Download {model.name} ({model.about}, {format_size(model.size)})?"
        wanted = click.confirm(wrap_for_terminal(question), default=True, err=True)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    if wanted:
        download_model(store, model)
    return wanted


def format_size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


@contextmanager
def show_progress(name: str, expected: int) -> Iterator[Progress]:
    """A bar on a terminal, a line per quarter elsewhere."""
    if not sys.stderr.isatty():
        yield _make_line_progress(name, expected)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(name, total=expected or None)
        yield lambda done, total: bars.update(task, completed=done, total=total or expected or None)


def _make_line_progress(name: str, expected: int) -> Progress:
    told = -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        whole = total or expected
        quarter = 4 * done // whole if whole else 0
        if quarter > told:
            told = quarter
            share = f" {25 * quarter} % of {format_size(whole)}" if whole else ""
            print(f"ollm: downloading {name}{share}", file=sys.stderr, flush=True)

    return tell
