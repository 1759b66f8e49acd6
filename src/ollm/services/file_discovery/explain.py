"""Why a path is shown or hidden: the rule that decides, and all rules of a tree as one list of patterns."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePath

from ollm.domain.struct import Data
from ollm.services.file_discovery.layers import find_rule_names
from ollm.services.file_discovery.patterns import BadPattern, compile_bytes, translate_pattern
from ollm.services.file_discovery.rules import IgnoreRule, Matcher, parse_ignore_rules
from ollm.services.file_discovery.walk import Walk


class Explanation(Data, frozen=True):
    """Visibility of a path, with the reason. `decided_at` is the part of the path the rule is about."""

    path: str
    shown: bool
    reason: str
    decided_at: str = ""
    rule: str | None = None
    source: str | None = None
    line: int | None = None


def explain_path(walk: Walk, root: Path, path: str) -> Explanation:
    relative = _resolve_relative(root, path)
    if relative is None:
        return Explanation(path=path, shown=False, reason=f"it is outside {root}")
    layers, at, kept_by = walk.start.layers, root, None
    for depth, name in enumerate(relative.parts):
        prefix = f"{PurePath(*relative.parts[:depth])}/" if depth else ""
        layers = walk.reader.read_layers(layers, str(at), walk.get_path_from_top(prefix), find_rule_names(str(at)))
        at = at / name
        here = str(PurePath(*relative.parts[: depth + 1]))
        plain = _find_plain_reason(at, last=depth + 1 == len(relative.parts))
        if plain:
            return Explanation(path=path, shown=False, reason=plain, decided_at=here)
        rule = layers.matcher.find_deciding_rule(os.fsencode(walk.get_path_from_top(here)), directory=at.is_dir())
        if rule is not None and not rule.negated:
            return _explain_rule(path, here, rule, shown=False)
        kept_by = (here, rule) if rule is not None else kept_by
    if kept_by is not None:
        return _explain_rule(path, kept_by[0], kept_by[1], shown=True)
    return Explanation(path=path, shown=True, reason="no rule hides it")


def _resolve_relative(root: Path, path: str) -> PurePath | None:
    """Links in the directories above the last part are the user's way of naming it; the last part is taken as it is."""
    given = root / path
    real = Path(os.path.realpath(given.parent)) / given.name
    return real.relative_to(root) if real.is_relative_to(root) and real != root else None


def _find_plain_reason(path: Path, *, last: bool) -> str | None:
    """Why a path is left out that needs no rule."""
    if path.name == ".git":
        return ".git is never shown"
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "it does not exist"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if stat.S_ISLNK(mode):
        return "it is a symbolic link, and those are not followed"
    if stat.S_ISDIR(mode) or (last and stat.S_ISREG(mode)):
        return None
    return "it is not a regular file" if last else "part of the path is a file"


def _explain_rule(path: str, here: str, rule: IgnoreRule, *, shown: bool) -> Explanation:
    verb = "includes it" if shown else "hides it" if here == path else f"hides {here}"
    return Explanation(
        path=path,
        shown=shown,
        reason=f"{rule.source}:{rule.line} {verb}: {rule.text}",
        decided_at=here,
        rule=rule.text,
        source=rule.source,
        line=rule.line,
    )


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
    """Return True if the patterns hide a path from the root, itself or with a directory above it. A path that ends with
    a slash is a directory."""
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
