"""`sessions view` and `sessions export`: everything that can be read, and a word about what cannot."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import click

from ollm.cli.options import json_option, resolve_workspace, styled, workspace_option
from ollm.cli.printable import printable
from ollm.cli.table import warn
from ollm.domain.errors import NotFoundError, StorageError, UsageError

if TYPE_CHECKING:
    from ollm.app import Process
    from ollm.store.session_files import SessionStream

Piece = TypeVar("Piece", str, bytes)
RENDERING_SECONDS = 2.5  # more than reading alone may take of a damaged file
LOOK_EVERY = 16  # pieces between two looks at the bar


@click.command()
@click.argument("session", metavar="[ID]", required=False)
@click.option("--unfold", is_flag=True, help="Show tool calls with their arguments and results.")
@workspace_option
@json_option
def view(session: str | None, unfold: bool, workspace: str | None, as_json: bool) -> None:
    """Read a session; without ID the newest one of the workspace."""
    from ollm.app import Process

    process = Process()
    session_id = chosen(process, session, workspace)
    with process.session_files.stream(session_id) as stream:
        stream.reader.damage.allow(RENDERING_SECONDS)
        if as_json:
            _write(sys.stdout.buffer, _counted(stream, stream.document()))
        else:
            _show(stream, unfold)
        _tell_damage(stream)


def _show(stream: SessionStream, unfold: bool) -> None:
    """Through a pager as it is read; whoever leaves it stops the reading."""
    from ollm.cli.sessions.text import plain, session_lines
    from ollm.services.session_export.text import gathered

    style = styled if sys.stdout.isatty() else plain
    pieces = gathered(session_lines(stream, unfold=unfold, style=style))
    if sys.stdout.isatty():
        stream.reader.damage.allow(math.inf)
        click.echo_via_pager(_ended(pieces, stream))
    else:
        for piece in _counted(stream, pieces):
            sys.stdout.write(piece)


def _ended(pieces: Iterator[str], stream: SessionStream) -> Iterator[str]:
    yield from pieces
    if stream.damage:
        yield f"{styled('not everything could be read', fg='red')}: {printable(stream.damage)}\n"


@click.command()
@click.argument("session", metavar="[ID]", required=False)
@click.option("--output", "-o", required=True, metavar="FILE", help="The file to write; - is stdout.")
@click.option("--format", "form", type=click.Choice(["json", "markdown", "html"]), help="Else by the file's name.")
@click.option("--redact", is_flag=True, help="Take secrets out of every text.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@workspace_option
def export(
    session: str | None, output: str, form: str | None, redact: bool, force: bool, workspace: str | None
) -> None:
    """Write a session to a file: JSON, Markdown or HTML; without ID the newest one of the workspace."""
    from ollm.app import Process

    process = Process()
    session_id = chosen(process, session, workspace)
    target = None if output == "-" else _target(output, force)
    with process.session_files.stream(session_id) as stream:
        stream.reader.damage.allow(RENDERING_SECONDS)
        pieces = _counted(stream, _pieces(process, stream, form or _form_of(output), redact))
        if target is None:
            _write(sys.stdout.buffer, pieces)
        else:
            _to_file(target, pieces)
            print(f"Wrote session {session_id[:8]} to {target}.", file=sys.stderr)
        _tell_damage(stream)


def chosen(process: Process, session: str | None, workspace: str | None) -> str:
    """The session that was named, or the newest of the workspace."""
    if session:
        return process.session_files.places.find(session)
    place = str(resolve_workspace(workspace))
    for line in process.session_index.lines():
        if line["workspace"] == place:
            return str(line["sessionId"])
    raise NotFoundError(f"There is no session in {place} yet.", action="`ollm sessions list` shows all there are.")


def _pieces(process: Process, stream: SessionStream, form: str, redact: bool) -> Iterator[bytes]:
    from ollm.services.session_export import RedactedSession, html, markdown

    source = RedactedSession(stream, process.redactor.redact) if redact else stream
    if form == "json":
        return source.document()
    return (piece.encode("utf-8", "replace") for piece in (markdown(source) if form == "markdown" else html(source)))


def _counted(stream: SessionStream, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The pieces, with a bar on stderr that shows how far the file has been read."""
    from ollm.cli.sessions.table import progress

    show = progress("Reading", "MB")
    for position, piece in enumerate(pieces):
        if position % LOOK_EVERY == 0:
            show(*stream.reader.progress)
        yield piece
    show(1, 1)


def _target(output: str, force: bool) -> Path:
    target = Path(output)
    if target.is_dir():
        raise UsageError(f"{target} is a directory.", action="Name a file in it.")
    if _is_special(target):
        return target
    if target.exists() and not force:
        raise UsageError(f"{target} is there already.", action="Add --force to write over it.")
    if not target.parent.is_dir():
        raise UsageError(f"There is no directory {target.parent}.", action="Make it first, or name another file.")
    return target


def _form_of(output: str) -> str:
    return {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}.get(
        Path(output).suffix.lower(), "json"
    )


def _is_special(target: Path) -> bool:
    """A device or a pipe: written into, never replaced."""
    return target.exists() and not target.is_file()


def _to_file(target: Path, pieces: Iterator[bytes]) -> None:
    from ollm.system.atomic import replace_file

    try:
        if _is_special(target):
            with target.open("wb") as file:
                _write(file, pieces)
        else:
            replace_file(target, pieces)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}.") from error


def _tell_damage(stream: SessionStream) -> None:
    if stream.damage:
        warn(f"not everything could be read: {printable(stream.damage)}.")


def _write(stream: BinaryIO, pieces: Iterator[bytes]) -> None:
    stream.writelines(pieces)
    stream.flush()
