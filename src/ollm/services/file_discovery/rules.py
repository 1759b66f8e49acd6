"""Ignore files, read as git reads them: one `Rule` a line, and a word about every line that cannot be used (D624)."""

from __future__ import annotations

import os
import stat

from ollm.services.file_discovery.wildmatch import (
    BadPattern,
    escape_literal,
    expand_sets,
    measure_literal,
    translate_pattern,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_FILE_BYTES = 4 << 20
_MAX_PATTERN_BYTES = 4096
_ANYWHERE = rb"(?:[^\x00]*/)?"


class IgnoreRule:
    """One line of an ignore file. `expression` is for paths from the root of the walk; a path that it matches has one
    of the `names`, or a name that begins or ends with one of `beginnings` or `endings`, where there are any."""

    __slots__ = (
        "anywhere", "base", "beginnings", "endings", "expression", "line", "names", "negated", "only_directories",
        "source", "text",
    )  # fmt: skip

    def __init__(
        self,
        *,
        expression: bytes,
        negated: bool,
        only_directories: bool,
        text: str,
        base: bytes,
        source: str,
        line: int,
        names: tuple[str, ...] = (),
        beginnings: tuple[str, ...] = (),
        endings: tuple[str, ...] = (),
        anywhere: bool = False,
    ) -> None:
        self.expression, self.negated, self.only_directories = expression, negated, only_directories
        self.text, self.base, self.source, self.line = text, base, source, line
        self.names, self.beginnings, self.endings, self.anywhere = names, beginnings, endings, anywhere


class BadIgnoreRule:
    """A line that was skipped, where it is and why."""

    __slots__ = ("line", "reason", "source", "text")

    def __init__(self, *, text: str, source: str, line: int, reason: str) -> None:
        self.text, self.source, self.line, self.reason = text, source, line, reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BadIgnoreRule) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    @property
    def _fields(self) -> tuple[str, int, str, str]:
        return self.source, self.line, self.text, self.reason


class IgnoreFile:
    """What one ignore file says."""

    __slots__ = ("bad", "rules")

    def __init__(self, rules: tuple[IgnoreRule, ...] = (), bad: tuple[BadIgnoreRule, ...] = ()) -> None:
        self.rules, self.bad = rules, bad


def read_ignore_file(path: str, base: bytes | None, source: str | None = None) -> IgnoreFile:
    """The rules of an ignore file that is in `base` (a path from the root of the walk, b"" for the root itself).
    A missing, unreadable, special or huge file has none."""
    content = _read_content(path)
    return parse_ignore_rules(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), base or b"", source or path)


def _read_content(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, _MAX_FILE_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parse_ignore_rules(lines: Iterable[bytes], base: bytes, source: str) -> IgnoreFile:
    rules: list[IgnoreRule] = []
    bad: list[BadIgnoreRule] = []
    for number, raw in enumerate(lines, 1):
        line = _strip_trailing_spaces(raw.removesuffix(b"\r"))
        if not line or line.startswith(b"#") or b"\0" in line:
            continue
        text = os.fsdecode(line[:_MAX_PATTERN_BYTES])
        try:
            rules.append(_parse_rule(line, base, text, source, number))
        except BadPattern as error:
            bad.append(BadIgnoreRule(text=text, source=source, line=number, reason=str(error)))
    return IgnoreFile(rules=tuple(rules), bad=tuple(bad))


def _parse_rule(line: bytes, base: bytes, text: str, source: str, number: int) -> IgnoreRule:
    negated = line.startswith(b"!")
    pattern = line[1:] if negated else line
    only_directories = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_directories else pattern
    if not pattern:
        raise BadPattern("it matches nothing")
    if len(pattern) > _MAX_PATTERN_BYTES:
        raise BadPattern("it is longer than a path can be")
    start = escape_literal(base) + b"/" if base else b""
    return IgnoreRule(
        expression=start
        + (
            translate_pattern(pattern.removeprefix(b"/")) if b"/" in pattern else _ANYWHERE + translate_pattern(pattern)
        ),
        negated=negated,
        only_directories=only_directories,
        text=text,
        base=base,
        source=source,
        line=number,
        anywhere=b"/" not in pattern,
        **_find_name_hints(pattern),
    )


def _find_name_hints(pattern: bytes) -> dict[str, tuple[str, ...]]:
    """What can be told about the names a pattern matches without looking at the whole path."""
    above, _, last = pattern.rpartition(b"/")
    if b"[" in above:  # the slash may stand in a set
        return {}
    if last and _is_literal(last):
        return {"names": (os.fsdecode(last),)}
    names = expand_sets(last)
    if all(name and _is_literal(name) for name in names):
        return {"names": _decode_all(names)}
    if all(name[:1] == b"*" and len(name) > 1 and _is_literal(name[1:]) for name in names):
        return {"endings": _decode_all([name[1:] for name in names])}
    if all(name[-1:] == b"*" and len(name) > 1 and _is_literal(name[:-1]) for name in names):
        return {"beginnings": _decode_all([name[:-1] for name in names])}
    return {}


def _is_literal(text: bytes) -> bool:
    return measure_literal(text) == len(text)


def _decode_all(names: list[bytes]) -> tuple[str, ...]:
    return tuple([os.fsdecode(name) for name in names])


def _strip_trailing_spaces(line: bytes) -> bytes:
    """As git does it: spaces at the end go, unless a backslash keeps them."""
    end = keep = 0
    while end < len(line):
        if line[end] == 0x5C:
            if end + 1 == len(line):
                return line
            end += 2
            keep = end
        else:
            end += 1
            keep = end if line[end - 1] != 0x20 else keep
    return line[:keep]
