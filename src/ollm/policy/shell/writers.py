"""Programs that write files: which of their words name what is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ollm.domain.struct import Data
from ollm.policy.shell.options import OptionGrammar, scan_options
from ollm.policy.shell.words import ShellWord

Shape = Literal["all", "last", "option", "first"]


class WritingProgram(Data, frozen=True):
    """`all` operands are written, the `last` one (the others are read), or only what `options` name. `directory`
    options name where the result goes. `moves`: sources are written too. `skip` operands are no paths."""

    shape: Shape
    grammar: OptionGrammar = OptionGrammar()
    options: tuple[str, ...] = ()
    skip: int = 0
    moves: bool = False
    deep: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # only with one of these options does it write


class FileTargets(Data, frozen=True):
    """Words that name files written and files read; `removed` ones go with everything in them."""

    written: tuple[ShellWord, ...] = ()
    read: tuple[ShellWord, ...] = ()
    removed: tuple[ShellWord, ...] = ()


def _make_writer(shape: Shape, values: str = "", longs: str = "", **settings: object) -> WritingProgram:
    grammar = OptionGrammar(values=values, long_values=tuple(longs.split()))
    return WritingProgram(shape=shape, grammar=grammar, **settings)  # type: ignore[arg-type]  # checked by msgspec's constructor


_TARGET_OPTIONS = ("t", "target-directory")
_IN_PLACE_OPTIONS = ("i", "in-place")

WRITING_PROGRAMS: dict[str, WritingProgram] = {
    "cp": _make_writer("last", "tS", "target-directory suffix", options=_TARGET_OPTIONS),
    "mv": _make_writer("last", "tS", "target-directory suffix", options=_TARGET_OPTIONS, moves=True),
    "ln": _make_writer("last", "tS", "target-directory suffix", options=_TARGET_OPTIONS),
    "install": _make_writer("last", "tSmog", "target-directory suffix mode owner group", options=_TARGET_OPTIONS),
    "rsync": _make_writer("last", "efTBM", "rsh exclude include exclude-from files-from backup-dir log-file temp-dir"),
    "scp": _make_writer("last", "cFiJloPSX"),
    "tee": _make_writer("all"),
    "sponge": _make_writer("all"),
    "touch": _make_writer("all", "drt", "date reference time"),
    "rm": _make_writer("all", deep=("r", "R", "recursive")),
    "rmdir": _make_writer("all"),
    "unlink": _make_writer("all"),
    "shred": _make_writer("all", "nsu", "iterations size"),
    "mkdir": _make_writer("all", "mZ", "mode"),
    "mkfifo": _make_writer("all", "m", "mode"),
    "mknod": _make_writer("first", "m", "mode"),
    "truncate": _make_writer("all", "sr", "size reference"),
    "chmod": _make_writer("all", "", "reference", skip=1, deep=("R", "recursive")),
    "chown": _make_writer("all", "", "reference from", skip=1, deep=("R", "recursive")),
    "chgrp": _make_writer("all", "", "reference", skip=1, deep=("R", "recursive")),
    "chattr": _make_writer("all", skip=1, deep=("R",)),
    "setfacl": _make_writer("all", "mxM", deep=("R",)),
    "sed": _make_writer("all", "efl", "expression file line-length", skip=1, needs=_IN_PLACE_OPTIONS),
    "perl": _make_writer("all", "eEIMm", skip=0, needs=("i",)),
    "ruby": _make_writer("all", "eIr", skip=0, needs=("i",)),
    "patch": _make_writer(
        "all", "dioprBDFYz", "directory input output reject-file strip", options=("o", "output", "r", "d")
    ),
    "curl": _make_writer(
        "option",
        "oHdXuAebFTKcDwxE",
        "output dump-header cookie-jar output-dir trace trace-ascii stderr etag-save",
        options=("o", "output", "D", "dump-header", "c", "cookie-jar", "output-dir", "trace", "trace-ascii", "stderr"),
    ),
    "wget": _make_writer(
        "option",
        "OPoaeUtTQlARDIX",
        "output-document directory-prefix output-file append-output",
        options=("O", "output-document", "P", "directory-prefix", "o", "output-file", "a", "append-output"),
    ),
    "tar": _make_writer(
        "option", "fCITXbgHVKN", "file directory exclude exclude-from", options=("f", "file", "C", "directory")
    ),
    "unzip": _make_writer("option", "dxP", options=("d",)),
    "zip": _make_writer("first", "xib"),
    "gcc": _make_writer("option", "oIDLl", options=("o",)),
    "openssl": _make_writer("option", "", "out", options=("out",)),
    "split": _make_writer("option", "abClnt"),
    "sort": _make_writer("option", "kotST", "output", options=("o", "output")),
    "vim": _make_writer("all", "cSu"),
    "vi": _make_writer("all", "cSu"),
    "nvim": _make_writer("all", "cSu"),
    "nano": _make_writer("all"),
    "emacs": _make_writer("all"),
    "ed": _make_writer("all"),
    "ex": _make_writer("all", "c"),
}


def find_targets(program: str, words: Sequence[ShellWord]) -> FileTargets:
    """The words that name what would be written and read; nothing for a program that is not known to write."""
    if program == "dd":
        return _find_dd_targets(words)
    writer = WRITING_PROGRAMS.get(program)
    if writer is None:
        return FileTargets()
    found = scan_options(words, writer.grammar)
    if writer.needs and not any(_is_needed(option.name, writer) for option in found.options):
        return FileTargets()
    operands = [word for _, word in found.operands][writer.skip :]
    written = [option.value for option in found.options if option.is_any(writer.options) and option.value]
    deep = any(option.is_any(writer.deep) for option in found.options)
    match writer.shape:
        case "all":
            found_targets = FileTargets(written=(*written, *operands), removed=tuple(operands) if deep else ())
        case "first":
            found_targets = FileTargets(written=(*written, *operands[:1]), read=tuple(operands[1:]))
        case "option":
            found_targets = FileTargets(written=tuple(written))
        case _:
            found_targets = _find_copy_targets(writer, operands, written)
    return found_targets


def _is_needed(name: str, writer: WritingProgram) -> bool:
    return name in writer.needs or name.startswith("in-place")


def _find_copy_targets(writer: WritingProgram, operands: list[ShellWord], directories: list[ShellWord]) -> FileTargets:
    """Copying writes the last operand, and each source's name inside it when it is a directory."""
    sources, places = (operands, directories) if directories else (operands[:-1], operands[-1:])
    if not places and operands:
        places = operands
    inside = [_join_name(place, source) for place in places for source in sources]
    moved = tuple(sources) if writer.moves else ()
    return FileTargets(written=(*places, *inside, *moved), read=tuple(sources), removed=moved)


def _join_name(place: ShellWord, source: ShellWord) -> ShellWord:
    """The name that a source gets in a directory."""
    name = source.text.rstrip("/").rsplit("/", 1)[-1]
    if name in ("", ".", ".."):
        return place
    text = f"{place.text.rstrip('/') or '/'}/{name}"
    static = place.static and source.static
    return ShellWord(text=text, known=text if static else place.known, static=static, glob=place.glob or source.glob)


def _find_dd_targets(words: Sequence[ShellWord]) -> FileTargets:
    def find_named(prefix: str) -> tuple[ShellWord, ...]:
        return tuple(
            ShellWord(text=word.text[3:], known=word.known[3:], static=word.static)
            for word in words[1:]
            if word.text.startswith(prefix)
        )

    return FileTargets(written=find_named("of="), read=find_named("if="))
