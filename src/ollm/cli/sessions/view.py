"""`sessions view` and `sessions export`: a session for people and for files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import click

from ollm.app.process import ProcessScope
from ollm.cli.options import make_progress, resolve_workspace, shared_options, warn
from ollm.domain.errors import DamagedError, NotFoundError, UsageError
from ollm.services.session_export import RedactedSession, render_export, render_markdown
from ollm.services.session_export.target import FORMATS, check_output, choose_format, write_export
from ollm.store.session_files.reader import SessionReader
from ollm.system.terminal_text import escape_json, make_printable

Chunk = TypeVar("Chunk", str, bytes)
CHUNKS_PER_UPDATE = 16


@click.command()
@shared_options("session")
@click.option("--unfold", is_flag=True, help="Show tool calls with their arguments and results.")
@shared_options("within", "json")
def view(session: str | None, unfold: bool, within: Path | None, as_json: bool) -> None:
    """Read a session; without ID the newest one of the workspace."""
    process = ProcessScope()
    session_id = resolve_session_id(process, session, within)
    with process.session_files.open_reader(session_id) as reader:
        if as_json:
            _write_chunks(sys.stdout.buffer, _follow(reader, _escape_hidden(reader.iter_document()), "viewed"))
        elif sys.stdout.isatty():
            click.echo_via_pager(render_markdown(reader, folded=not unfold))
        else:
            sys.stdout.writelines(_follow(reader, render_markdown(reader, folded=not unfold), "viewed"))
        warn_damage(reader.damage)


@click.command()
@shared_options("session")
@click.option("--output", "-o", required=True, metavar="FILE", help="File to write; - for stdout.")
@click.option(
    "--format", "form", type=click.Choice(["json", "markdown", "md", "html"]), help="Default: from the file extension."
)
@click.option("--redact", is_flag=True, help="Redact secrets.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@shared_options("within")
def export(session: str | None, output: str, form: str | None, redact: bool, force: bool, within: Path | None) -> None:
    """Write a session to a file: JSON, Markdown or HTML; without ID the newest one of the workspace."""
    process = ProcessScope()
    session_id = resolve_session_id(process, session, within)
    target = None if output == "-" else check_output(output, force=force)
    if target:
        _refuse_own_place(target, process)
    with process.session_files.open_reader(session_id) as reader:
        if form or target is None:
            form = FORMATS[f".{form or 'json'}"]
        else:
            form = choose_format(target, "Use .json, .md or .html, or choose one with --format.")
        chunks = render_export(RedactedSession(reader, process.redact_field) if redact else reader, form)
        chunks = _escape_hidden(chunks) if form == "json" else chunks
        if target is None:
            _write_chunks(sys.stdout.buffer, _follow(reader, chunks, "exported", "; the output is empty"))
        else:
            chunks = _follow(reader, chunks, "exported", f"; {target} was not written")
            write_export(target, chunks, process.home.exports)
            print(f"Wrote session {session_id} to {target}.", file=sys.stderr)
        warn_damage(reader.damage)


def resolve_session_id(process: ProcessScope, session: str | None, within: Path | None) -> str:
    """Return the id of the named session, or of the newest in the workspace."""
    if session is not None:
        return process.session_files.places.find(session)
    place = str(within or resolve_workspace())
    for line in process.session_index.list_sessions():
        if line["workspace"] == place:
            return str(line["sessionId"])
    raise NotFoundError(f"No session in {place} yet.", action="List them with `ollm sessions list`.")


def _escape_hidden(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Escape characters in JSON that are invisible or change the text direction."""
    for chunk in chunks:
        yield chunk if chunk.isascii() else escape_json(chunk.decode("utf-8", "replace")).encode()


def _follow(reader: SessionReader, chunks: Iterator[Chunk], done: str, outcome: str = "") -> Iterator[Chunk]:
    """Yield the chunks while a bar on stderr shows how far the file has been read. Raises DamagedError at the end if no
    message could be read."""
    show = make_progress("Reading", "MB")
    for position, chunk in enumerate(chunks):
        if position % CHUNKS_PER_UPDATE == 0:
            show(*reader.progress)
        yield chunk
    show(1, 1)
    if reader.unreadable:
        damage, session_id = make_printable(reader.damage or ""), reader.session.session_id
        raise DamagedError(
            f"Session {session_id} cannot be {done}: no message in it can be read ({damage}){outcome}.",
            action="Restore its file from a backup. `ollm sessions check` names every damaged session.",
        )


def _refuse_own_place(target: Path, process: ProcessScope) -> None:
    """Raise UsageError if an export would go into a directory of sessions."""
    place = target.resolve().parent
    if any(place.is_relative_to(own.resolve()) for own in (process.sessions_directory, process.home.trash)):
        raise UsageError(f"{place} is where sessions are kept.", action="Choose another directory.")


def warn_damage(damage: str | None) -> None:
    if damage:
        warn(f"some data could not be read: {make_printable(damage)}.")


def _write_chunks(stream: BinaryIO, chunks: Iterator[bytes]) -> None:
    stream.writelines(chunks)
    stream.flush()
