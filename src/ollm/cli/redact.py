"""`ollm redact`: text with its secrets taken out, as the log would hold it (S10.7)."""

from __future__ import annotations

import sys

import click

from ollm.domain.errors import NotFoundError, StorageError


@click.command()
@click.argument("file", required=False)
def redact(file: str | None) -> None:
    """Print FILE, or stdin, with secrets redacted."""
    from ollm.app import ProcessScope

    redacted = ProcessScope().redactor.redact(_read_text(file))
    sys.stdout.buffer.write(redacted.encode("utf-8", "surrogateescape"))


def _read_text(file: str | None) -> str:
    """Bytes that are no text pass through unchanged."""
    if file is None or file == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    from pathlib import Path

    try:
        return Path(file).read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError as error:
        raise NotFoundError(f"no such file: {file}.") from error
    except (OSError, ValueError) as error:
        raise StorageError(f"Cannot read {file}: {error}.") from error
