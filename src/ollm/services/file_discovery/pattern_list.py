"""All rules of a tree as one flat list of patterns from its root, the last match winning (D's loadIgnorePatterns)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath

from ollm.services.file_discovery.expressions import compile_bytes
from ollm.services.file_discovery.matcher import Matcher
from ollm.services.file_discovery.rules import IgnoreRule, parse_ignore_rules
from ollm.services.file_discovery.wildmatch import BadPattern, translate_pattern


class IgnorePatterns(list[str]):
    """Patterns that know which directory they are about, so that absolute paths below it can be asked about too."""

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        super().__init__(patterns)
        self.root = root


def flatten_rules(rules: Iterable[IgnoreRule], offset: bytes) -> list[str]:
    """The rules as patterns from the walk's root, which lies `offset` below the directory the rules are about."""
    return [os.fsdecode(pattern) for rule in rules if (pattern := _flatten_rule(rule, offset)) is not None]


def _flatten_rule(rule: IgnoreRule, offset: bytes) -> bytes | None:
    line = os.fsencode(rule.text)
    sign, pattern = (b"!", line[1:]) if rule.negated else (b"", line)
    anchored = b"/" in pattern.rstrip(b"/")
    base = _strip_offset(rule.base, offset)
    if base is None:
        return sign + pattern if not anchored else _flatten_from_above(sign, pattern, rule.base, offset)
    start = b"/" + _escape_path(base) + b"/" if base else b""
    if not anchored:
        return sign + start + (b"**/" if start else b"") + pattern
    return sign + (start or b"/") + pattern.removeprefix(b"/")


def _flatten_from_above(sign: bytes, pattern: bytes, base: bytes, offset: bytes) -> bytes | None:
    """A pattern with slashes that is above the root: what is left of it below the root, if it leads there."""
    parts = pattern.removeprefix(b"/").split(b"/")
    way = offset[len(base) :].strip(b"/").split(b"/")
    while way and parts and parts[0] != b"**":
        if not _matches(parts.pop(0), way.pop(0)):
            return None
    left = b"/".join(parts)
    return sign + b"/" + left if left else None


def _matches(pattern: bytes, name: bytes) -> bool:
    try:
        return compile_bytes(translate_pattern(pattern)).fullmatch(name) is not None
    except BadPattern:
        return False


def _strip_offset(base: bytes, offset: bytes) -> bytes | None:
    if not offset or base == offset:
        return base[len(offset) :]
    return base[len(offset) + 1 :] if base.startswith(offset + b"/") else None


def _escape_path(path: bytes) -> bytes:
    return b"".join(b"\\" + bytes([code]) if code in b"*?[\\" else bytes([code]) for code in path)


def is_ignored(path: str, patterns: Iterable[str]) -> bool:
    """Whether the patterns hide a path from the root, itself or with a directory above it.
    A path that ends with a slash is a directory."""
    root = getattr(patterns, "root", None)
    directory = path.endswith("/")
    if root and PurePath(path).is_relative_to(root):
        directory = directory or os.path.isdir(path)  # noqa: PTH112 - a string in, a string out
        path = str(PurePath(path).relative_to(root))
    parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
    matcher = _make_matcher(tuple(patterns))
    return any(
        matcher.hides(b"/".join(parts[:end]), directory=directory or end < len(parts))
        for end in range(1, len(parts) + 1)
    )


@lru_cache(maxsize=16)
def _make_matcher(patterns: tuple[str, ...]) -> Matcher:
    return Matcher(parse_ignore_rules([os.fsencode(pattern) for pattern in patterns], b"", "patterns").rules)
