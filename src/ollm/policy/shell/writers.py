"""Programs that write files: which of their words name what is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ollm.domain.struct import Data
from ollm.policy.shell.options import Grammar, scan
from ollm.policy.shell.words import Word

Shape = Literal["all", "last", "option", "first"]


class Writer(Data, frozen=True):
    """`all` operands are written, the `last` one (the others are read), or only what `options` name. `directory`
    options name where the result goes. `moves`: sources are written too. `skip` operands are no paths."""

    shape: Shape
    grammar: Grammar = Grammar()
    options: tuple[str, ...] = ()
    skip: int = 0
    moves: bool = False
    deep: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # only with one of these options does it write


class Targets(Data, frozen=True):
    """Words that name files written and files read; `removed` ones go with everything in them."""

    written: tuple[Word, ...] = ()
    read: tuple[Word, ...] = ()
    removed: tuple[Word, ...] = ()


def _writer(shape: Shape, values: str = "", longs: str = "", **settings: object) -> Writer:
    grammar = Grammar(values=values, long_values=tuple(longs.split()))
    return Writer(shape=shape, grammar=grammar, **settings)  # type: ignore[arg-type]  # checked by msgspec's constructor


_TARGET = ("t", "target-directory")
_IN_PLACE = ("i", "in-place")

WRITERS: dict[str, Writer] = {
    "cp": _writer("last", "tS", "target-directory suffix", options=_TARGET),
    "mv": _writer("last", "tS", "target-directory suffix", options=_TARGET, moves=True),
    "ln": _writer("last", "tS", "target-directory suffix", options=_TARGET),
    "install": _writer("last", "tSmog", "target-directory suffix mode owner group", options=_TARGET),
    "rsync": _writer("last", "efTBM", "rsh exclude include exclude-from files-from backup-dir log-file temp-dir"),
    "scp": _writer("last", "cFiJloPSX"),
    "tee": _writer("all"),
    "sponge": _writer("all"),
    "touch": _writer("all", "drt", "date reference time"),
    "rm": _writer("all", deep=("r", "R", "recursive")),
    "rmdir": _writer("all"),
    "unlink": _writer("all"),
    "shred": _writer("all", "nsu", "iterations size"),
    "mkdir": _writer("all", "mZ", "mode"),
    "mkfifo": _writer("all", "m", "mode"),
    "mknod": _writer("first", "m", "mode"),
    "truncate": _writer("all", "sr", "size reference"),
    "chmod": _writer("all", "", "reference", skip=1, deep=("R", "recursive")),
    "chown": _writer("all", "", "reference from", skip=1, deep=("R", "recursive")),
    "chgrp": _writer("all", "", "reference", skip=1, deep=("R", "recursive")),
    "chattr": _writer("all", skip=1, deep=("R",)),
    "setfacl": _writer("all", "mxM", deep=("R",)),
    "sed": _writer("all", "efl", "expression file line-length", skip=1, needs=_IN_PLACE),
    "perl": _writer("all", "eEIMm", skip=0, needs=("i",)),
    "ruby": _writer("all", "eIr", skip=0, needs=("i",)),
    "patch": _writer(
        "all", "dioprBDFYz", "directory input output reject-file strip", options=("o", "output", "r", "d")
    ),
    "curl": _writer(
        "option",
        "oHdXuAebFTKcDwxE",
        "output dump-header cookie-jar output-dir trace trace-ascii stderr etag-save",
        options=("o", "output", "D", "dump-header", "c", "cookie-jar", "output-dir", "trace", "trace-ascii", "stderr"),
    ),
    "wget": _writer(
        "option",
        "OPoaeUtTQlARDIX",
        "output-document directory-prefix output-file append-output",
        options=("O", "output-document", "P", "directory-prefix", "o", "output-file", "a", "append-output"),
    ),
    "tar": _writer(
        "option", "fCITXbgHVKN", "file directory exclude exclude-from", options=("f", "file", "C", "directory")
    ),
    "unzip": _writer("option", "dxP", options=("d",)),
    "zip": _writer("first", "xib"),
    "gcc": _writer("option", "oIDLl", options=("o",)),
    "openssl": _writer("option", "", "out", options=("out",)),
    "split": _writer("option", "abClnt"),
    "sort": _writer("option", "kotST", "output", options=("o", "output")),
    "vim": _writer("all", "cSu"),
    "vi": _writer("all", "cSu"),
    "nvim": _writer("all", "cSu"),
    "nano": _writer("all"),
    "emacs": _writer("all"),
    "ed": _writer("all"),
    "ex": _writer("all", "c"),
}


def targets(program: str, words: Sequence[Word]) -> Targets:
    """The words that name what would be written and read; nothing for a program that is not known to write."""
    if program == "dd":
        return _dd(words)
    writer = WRITERS.get(program)
    if writer is None:
        return Targets()
    found = scan(words, writer.grammar)
    if writer.needs and not any(_is_needed(option.name, writer) for option in found.options):
        return Targets()
    operands = [word for _, word in found.operands][writer.skip :]
    written = [option.value for option in found.options if option.is_any(writer.options) and option.value]
    deep = any(option.is_any(writer.deep) for option in found.options)
    match writer.shape:
        case "all":
            found_targets = Targets(written=(*written, *operands), removed=tuple(operands) if deep else ())
        case "first":
            found_targets = Targets(written=(*written, *operands[:1]), read=tuple(operands[1:]))
        case "option":
            found_targets = Targets(written=tuple(written))
        case _:
            found_targets = _copied(writer, operands, written)
    return found_targets


def _is_needed(name: str, writer: Writer) -> bool:
    return name in writer.needs or name.startswith("in-place")


def _copied(writer: Writer, operands: list[Word], directories: list[Word]) -> Targets:
    """Copying writes the last operand, and each source's name inside it when it is a directory."""
    sources, places = (operands, directories) if directories else (operands[:-1], operands[-1:])
    if not places and operands:
        places = operands
    inside = [_inside(place, source) for place in places for source in sources]
    moved = tuple(sources) if writer.moves else ()
    return Targets(written=(*places, *inside, *moved), read=tuple(sources), removed=moved)


def _inside(place: Word, source: Word) -> Word:
    """The name that a source gets in a directory."""
    name = source.text.rstrip("/").rsplit("/", 1)[-1]
    if name in ("", ".", ".."):
        return place
    text = f"{place.text.rstrip('/') or '/'}/{name}"
    static = place.static and source.static
    return Word(text=text, known=text if static else place.known, static=static, glob=place.glob or source.glob)


def _dd(words: Sequence[Word]) -> Targets:
    def named(prefix: str) -> tuple[Word, ...]:
        return tuple(
            Word(text=word.text[3:], known=word.known[3:], static=word.static)
            for word in words[1:]
            if word.text.startswith(prefix)
        )

    return Targets(written=named("of="), read=named("if="))
