"""`sessions view` and `sessions export`: everything that can be read, and a word about what cannot."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ollm.cli.options import json_option, resolve_workspace, styled, warn, workspace_option
from ollm.domain.errors import NotFoundError, StorageError, UsageError

if TYPE_CHECKING:
    from ollm.app import Process
    from ollm.store.session_files import Loaded


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
    loaded = _read(process, session_id)
    _tell_damage(loaded)
    if as_json:
        _write(sys.stdout.buffer, _pieces(process, loaded, "json", redact=False))
        return
    from ollm.cli.sessions_text import plain, session_lines

    if sys.stdout.isatty():
        click.echo_via_pager(session_lines(loaded.session, unfold=unfold, style=styled))
    else:
        for line in session_lines(loaded.session, unfold=unfold, style=plain):
            sys.stdout.write(line)


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
    loaded = _read(process, session_id)
    _tell_damage(loaded)
    pieces = _pieces(process, loaded, form or _form_of(output), redact)
    if output == "-":
        _write(sys.stdout.buffer, pieces)
        return
    target = Path(output)
    if target.exists() and not force:
        raise UsageError(f"{target} is there already.", action="Add --force to write over it.")
    _to_file(target, pieces)
    print(f"Wrote session {session_id[:8]} to {target}.", file=sys.stderr)


def chosen(process: Process, session: str | None, workspace: str | None) -> str:
    """The session that was named, or the newest of the workspace."""
    if session:
        return process.session_files.places.find(session)
    place = str(resolve_workspace(workspace))
    for line in process.session_index.lines():
        if line["workspace"] == place:
            return str(line["sessionId"])
    raise NotFoundError(f"There is no session in {place} yet.", action="`ollm sessions list` shows all there are.")


def _pieces(process: Process, loaded: Loaded, form: str, redact: bool) -> Iterator[bytes]:
    """A healthy session's JSON is copied as it stands; of a damaged one, what could be read is written anew."""
    session = loaded.session
    if form == "json" and not redact and loaded.damage is None:
        return process.session_files.document(session.session_id)
    from ollm.services.session_export import html, markdown, redacted_session

    if redact:
        session = redacted_session(session, process.redactor.redact)
    if form == "json":
        import msgspec

        return iter([msgspec.json.encode(session), b"\n"])
    text = markdown(session) if form == "markdown" else html(session)
    return (piece.encode("utf-8", "replace") for piece in text)


def _form_of(output: str) -> str:
    return {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}.get(
        Path(output).suffix.lower(), "json"
    )


def _to_file(target: Path, pieces: Iterator[bytes]) -> None:
    from ollm.system.atomic import replace_file

    if target.is_dir():
        raise UsageError(f"{target} is a directory.", action="Name a file in it.")
    if not target.parent.is_dir():
        raise UsageError(f"There is no directory {target.parent}.", action="Make it first, or name another file.")
    try:
        replace_file(target, pieces)
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}.") from error


def _read(process: Process, session_id: str) -> Loaded:
    """All of it. What was read lives until the end of the command: looking for garbage in it is wasted time."""
    gc.disable()
    try:
        return process.session_files.read(session_id)
    finally:
        gc.freeze()
        gc.enable()


def _tell_damage(loaded: Loaded) -> None:
    if loaded.damage:
        warn(f"not everything could be read: {loaded.damage}.")


def _write(stream: object, pieces: Iterator[bytes]) -> None:
    write = stream.write  # type: ignore[attr-defined]
    for piece in pieces:
        write(piece)
    stream.flush()  # type: ignore[attr-defined]
