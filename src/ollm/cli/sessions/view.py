"""`sessions view` and `sessions export`: a session for people and for files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click

from ollm.app import ProcessScope
from ollm.cli.completion import complete_session
from ollm.cli.options import json_option, make_progress, resolve_workspace, style_text, warn, workspace_option
from ollm.domain.clock import format_age
from ollm.domain.errors import DamagedError, NotFoundError, StorageError, UsageError
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.text import format_count
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export import RedactedSession, render_html, render_markdown
from ollm.services.session_export.markdown import describe_outcome, gather_pieces, is_plain, slice_text
from ollm.services.session_export.markdown import format_arguments as arguments_of
from ollm.store.session_files.loading import SessionStream
from ollm.system.atomic import replace_file
from ollm.system.terminal_text import escape_json, make_printable

COLOURS = {"user": "green", "assistant": "blue", "system": "magenta", "tool": "yellow"}

Style = Callable[..., str]

FormatMoment = Callable[[str], str]  # a stamp as it is shown


def skip_style(text: str, **_style: Any) -> str:
    """Return the text without style, for output that is not a terminal."""
    return text


def format_past(stamp: str) -> str:
    """Format a time as relative to now; an invalid stamp is returned unchanged."""
    return format_age(stamp) or make_printable(stamp)


def render_session(
    stream: SessionStream, *, unfold: bool, style: Style, moment: FormatMoment = make_printable
) -> Iterator[str]:
    """Render a session piece by piece as it is read, each with its line end; report unreadable parts at the end."""
    session, count, messages = stream.session, 0, stream.iter_messages()
    first = next(messages, None)
    if first is None and stream.unreadable:
        return
    yield style(make_printable(session.metadata.title or "(no title)"), bold=True) + "\n"
    yield f"{session.session_id}  {make_printable(session.model)} ({make_printable(session.provider)})\n"
    yield " to ".join(dict.fromkeys((moment(session.start_time), moment(session.last_activity)))) + "\n"
    for message in chain((first,) if first else (), messages):
        count += 1
        if message.role != "tool" or message.text:
            yield from _render_message(message, stream, unfold, style, moment)
    for call in stream.iter_other_calls():
        yield from _render_call(call, unfold, style)
    yield f"\n{format_count(count, 'message')}\n"


def render_text(text: str, prefix: str = "") -> Iterator[str]:
    """Render text safely: unprintable characters are written as escapes."""
    for piece in slice_text(text.expandtabs(4) if "\t" in text else text):
        if not prefix and is_plain(piece):
            yield piece
        else:
            lines = piece.removesuffix("\n").split("\n")
            yield "\n".join(prefix + make_printable(line) for line in lines) + ("\n" if piece.endswith("\n") else "")
    yield "\n"


def _render_message(
    message: Message, stream: SessionStream, unfold: bool, style: Style, moment: FormatMoment
) -> Iterator[str]:
    mark = style(" (interrupted)", fg="red") if message.interrupted else ""
    name = style(message.role, fg=COLOURS[message.role], bold=True)
    yield f"\n#{message.id} {name}{mark}  {moment(message.timestamp)}\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from render_text(part.text)
        elif isinstance(part, ThinkingPart):
            yield from (style(piece, dim=True) for piece in render_text(part.text, "  ~ "))
        elif isinstance(part, ImagePart):
            yield f"  (an image, {make_printable(part.media_type)})\n"
        elif isinstance(part, ToolCallPart) and (call := stream.find_call(part.id)):
            yield from _render_call(call, unfold, style)


def _render_call(call: ToolCallRecord, unfold: bool, style: Style) -> Iterator[str]:
    lines = count_lines(call.result.llm_content) if call.result else 0
    size = "1 line" if lines == 1 else f"{lines:,} lines"
    arguments = ", ".join(f"{name}={str(value)[:80]}" for name, value in call.args.items())
    folded = make_printable(arguments if len(arguments) <= 70 else arguments[:69] + "…")
    outcome = describe_outcome(call)
    outcome = outcome if call.error is None else f"{outcome}: {make_printable(call.error.message)[:80]}"
    yield f"  {'▾' if unfold else '▸'} {style(make_printable(call.name), bold=True)}({folded}) → {outcome}, {size}\n"
    for asked in call.result.questions if call.result else ():
        yield f"    ? {make_printable(asked.question)}\n    › {make_printable(asked.answer)}\n"
    if unfold:
        yield from render_text(arguments_of(call), "    ")
        if call.result:
            yield from render_text(call.result.full_output or call.result.llm_content, "    │ ")


def count_lines(text: str) -> int:
    return text.count("\n") + bool(text and not text.endswith("\n"))


Chunk = TypeVar("Chunk", str, bytes)


CHUNKS_PER_UPDATE = 16  # chunks between two looks at the bar


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_session)
@click.option("--unfold", is_flag=True, help="Show tool calls with their arguments and results.")
@workspace_option
@json_option
def view(session: str | None, unfold: bool, workspace: str | None, as_json: bool) -> None:
    """Read a session; without ID the newest one of the workspace."""
    process = ProcessScope()
    session_id = resolve_session_id(process, session, workspace)
    with process.session_files.open_stream(session_id) as stream:
        if as_json:
            document = _track_progress(stream, _escape_hidden(stream.iter_document()))
            _write_chunks(sys.stdout.buffer, _refuse_unreadable(stream, document, "viewed"))
        else:
            _page_session(stream, unfold)
        _warn_damage(stream)


def _page_session(stream: SessionStream, unfold: bool) -> None:
    """Show a session in a pager while it is read. Quitting the pager stops the reading."""
    seen = sys.stdout.isatty()
    style, moment = (style_text, format_past) if seen else (skip_style, make_printable)
    chunks = gather_pieces(render_session(stream, unfold=unfold, style=style, moment=moment))
    if seen:
        click.echo_via_pager(_append_damage(chunks, stream))
    else:
        for chunk in _refuse_unreadable(stream, _track_progress(stream, chunks), "viewed"):
            sys.stdout.write(chunk)


def _append_damage(chunks: Iterator[str], stream: SessionStream) -> Iterator[str]:
    yield from chunks
    if stream.damage:
        yield f"{style_text('not everything could be read', fg='red')}: {make_printable(stream.damage)}\n"


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_session)
@click.option("--output", "-o", required=True, metavar="FILE", help="File to write; - for stdout.")
@click.option(
    "--format", "form", type=click.Choice(["json", "markdown", "html"]), help="Default: from the file extension."
)
@click.option("--redact", is_flag=True, help="Redact secrets.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@workspace_option
def export(
    session: str | None, output: str, form: str | None, redact: bool, force: bool, workspace: str | None
) -> None:
    """Write a session to a file: JSON, Markdown or HTML; without ID the newest one of the workspace."""
    process = ProcessScope()
    session_id = resolve_session_id(process, session, workspace)
    target = None if output == "-" else _resolve_target(output, force)
    if target:
        _refuse_own_place(target, process)
    with process.session_files.open_stream(session_id) as stream:
        chunks = _track_progress(stream, _render_export(process, stream, form or _guess_format(output), redact))
        if target is None:
            _write_chunks(sys.stdout.buffer, _refuse_unreadable(stream, chunks, "exported", "; the output is empty"))
        else:
            _write_file(target, _refuse_unreadable(stream, chunks, "exported", f"; {target} was not written"))
            print(f"Wrote session {session_id} to {target}.", file=sys.stderr)
        _warn_damage(stream)


def resolve_session_id(process: ProcessScope, session: str | None, workspace: str | None) -> str:
    """Return the id of the named session, or of the newest in the workspace."""
    if session is not None:
        return process.session_files.places.find(session)
    place = str(resolve_workspace(workspace))
    for line in process.session_index.list_sessions():
        if line["workspace"] == place:
            return str(line["sessionId"])
    raise NotFoundError(f"No session in {place} yet.", action="List them with `ollm sessions list`.")


def _render_export(process: ProcessScope, stream: SessionStream, form: str, redact: bool) -> Iterator[bytes]:
    source = RedactedSession(stream, process.redact_field) if redact else stream
    if form == "json":
        return _escape_hidden(source.iter_document())
    return (
        chunk.encode("utf-8", "replace")
        for chunk in (render_markdown(source) if form == "markdown" else render_html(source))
    )


def _escape_hidden(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Escape characters in JSON that are invisible or change the text direction."""
    for chunk in chunks:
        yield chunk if chunk.isascii() else escape_json(chunk.decode("utf-8", "replace")).encode()


def _track_progress(stream: SessionStream, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks while a bar on stderr shows how far the file has been read."""
    show = make_progress("Reading", "MB")
    for position, chunk in enumerate(chunks):
        if position % CHUNKS_PER_UPDATE == 0:
            show(*stream.reader.progress)
        yield chunk
    show(1, 1)


def _refuse_unreadable(stream: SessionStream, chunks: Iterator[Chunk], done: str, outcome: str = "") -> Iterator[Chunk]:
    """Yield the chunks, then raise DamagedError if no message could be read."""
    yield from chunks
    if stream.unreadable:
        damage, session_id = make_printable(stream.damage or ""), stream.session.session_id
        raise DamagedError(
            f"Session {session_id} cannot be {done}: no message in it can be read ({damage}){outcome}.",
            action="Restore its file from a backup. `ollm sessions check` names every damaged session.",
        )


def _refuse_own_place(target: Path, process: ProcessScope) -> None:
    """Raise UsageError if an export would go into a directory of sessions."""
    place = target.resolve().parent
    if any(place.is_relative_to(own.resolve()) for own in (*process.session_directories, process.home.trash)):
        raise UsageError(f"{place} is where sessions are kept.", action="Choose another directory.")


def _resolve_target(output: str, force: bool) -> Path:
    target = Path(output)
    if target.is_dir():
        raise UsageError(f"{target} is a directory.", action="Name a file inside it.")
    if _is_special(target):
        return target
    if target.exists() and not force:
        raise UsageError(f"{target} already exists.", action="Add --force to overwrite it.")
    if not target.parent.is_dir():
        raise UsageError(f"No such directory: {target.parent}.", action="Create it first, or choose another file.")
    return target


def _guess_format(output: str) -> str:
    suffix = Path(output).suffix.lower()
    formats = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".json": "json"}
    if suffix in formats or output == "-" or _is_special(Path(output)):
        return formats.get(suffix, "json")
    raise UsageError(
        f"Cannot tell the format from {output!r}.", action="Use .json, .md or .html, or choose one with --format."
    )


def _is_special(target: Path) -> bool:
    """Return True for a device or a pipe, which is never replaced."""
    return target.exists() and not target.is_file()


def _write_file(target: Path, chunks: Iterator[bytes]) -> None:
    try:
        if _is_special(target):
            with target.open("wb") as file:
                _write_chunks(file, chunks)
        else:
            replace_file(target, chunks)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error.strerror}.") from error


def _warn_damage(stream: SessionStream) -> None:
    if stream.damage:
        warn(f"some data could not be read: {make_printable(stream.damage)}.")


def _write_chunks(stream: BinaryIO, chunks: Iterator[bytes]) -> None:
    stream.writelines(chunks)
    stream.flush()
