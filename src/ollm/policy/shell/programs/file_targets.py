"""Find the words of a command that name files it writes, reads or removes, by the program's record."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.struct import Data
from ollm.policy.shell.options import scan_options
from ollm.policy.shell.programs.record import Program, Writing
from ollm.policy.shell.words import ShellWord, drop_prefix


class FileTargets(Data, frozen=True):
    """Words that name files written and files read; `removed` ones go with everything in them."""

    written: tuple[ShellWord, ...] = ()
    read: tuple[ShellWord, ...] = ()
    removed: tuple[ShellWord, ...] = ()


def find_targets(program: Program, words: Sequence[ShellWord]) -> FileTargets:
    """The words that name what would be written and read; nothing for a program that is not known to write."""
    writer, found = program.writes, scan_options(words, program.options)
    if writer is None or (writer.needs and not any(option.is_any(writer.needs) for option in found.options)):
        return FileTargets()
    skip = 0 if any(option.is_any(writer.skip_options) for option in found.options) else writer.skip
    operands = [word for _, word in found.operands][skip:]
    written = [option.value for option in found.options if option.is_any(writer.targets) and option.value]
    deep = any(option.is_any(writer.deep) for option in found.options)
    match writer.shape:
        case "all":
            return FileTargets(written=(*written, *operands), removed=tuple(operands) if deep else ())
        case "first":
            return FileTargets(written=(*written, *operands[:1]), read=tuple(operands[1:]))
        case "option":
            return FileTargets(written=tuple(written))
        case "settings":
            return FileTargets(written=_find_settings(words, "of="), read=_find_settings(words, "if="))
    return _find_copy_targets(writer, operands, written)


def _find_copy_targets(writer: Writing, operands: list[ShellWord], directories: list[ShellWord]) -> FileTargets:
    """Copying writes the last operand, and each source's name inside it when it is a directory."""
    sources, places = (operands, directories) if directories else (operands[:-1], operands[-1:])
    inside = [_join_name(place, source) for place in places for source in sources]
    moved = tuple(sources) if writer.moves else ()
    return FileTargets(written=(*places, *inside, *moved), read=tuple(sources), removed=moved)


def _join_name(place: ShellWord, source: ShellWord) -> ShellWord:
    name = source.text.rstrip("/").rpartition("/")[2]
    if name in ("", ".", ".."):
        return place
    text = f"{place.text.rstrip('/')}/{name}"
    static = place.static and source.static
    return ShellWord(text=text, known=text if static else place.known, static=static, glob=place.glob or source.glob)


def _find_settings(words: Sequence[ShellWord], prefix: str) -> tuple[ShellWord, ...]:
    return tuple(drop_prefix(word, len(prefix)) for word in words[1:] if word.text.startswith(prefix))
