"""Why a file is or is not there: the rule that decided, with its file and line."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePath

from ollm.domain.struct import Data
from ollm.services.file_discovery.layers import find_rule_names
from ollm.services.file_discovery.rules import IgnoreRule
from ollm.services.file_discovery.walk import Walk


class Explanation(Data, frozen=True):
    """Whether discovery shows a path, and why. `decided_at` is the part of the path the rule is about."""

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
