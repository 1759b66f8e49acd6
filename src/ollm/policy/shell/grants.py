"""Grants for shell commands: `shell:npm run test` covers commands that begin with these words, nothing around them;
`shell:=rm -r build` covers this command alone."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.policy.grants import Grant
from ollm.policy.shell import CommandPart
from ollm.policy.shell.programs import get_program

_NEVER_BY_SUBCOMMAND = frozenset({"exec", "x", "dlx", "config", "set", "publish", "push", "login", "token"})
_METACHARACTERS = frozenset("'\"\\$`|&;<>(){}[]*?~#!\n ")


def find_grant(part: CommandPart, command: str, grants: Sequence[Grant], *, plain: bool) -> Grant | None:
    """The grant that answers for this part: one for the very line, or one whose words it begins with. Words cover
    neither redirections and assignments nor options that run something."""
    for grant in grants:
        if grant.tool != "shell":
            continue
        if grant.text is None or grant.text == command.strip():
            return grant
        if (
            plain
            and part.words
            and _begins_with(part, grant.words)
            and not (grant.exact and _has_more_words(part, grant))
        ):
            return grant
    return None


def _begins_with(part: CommandPart, words: tuple[str, ...]) -> bool:
    texts = tuple(word.text if word.static else "\0" for word in part.words[: len(words)])
    return bool(words) and texts == words and not part.may_differ


def _has_more_words(part: CommandPart, grant: Grant) -> bool:
    return len(part.words) > len(grant.words)


def suggest_shell_grant(command: str, parts: Sequence[CommandPart], *, plain: bool) -> str:
    """The narrowest grant that makes sense: the program's words when one plain command asks, else the very line."""
    whole = f"shell:{command.strip()}"
    distinct = {_narrow_words(part) for part in parts}
    if not plain or len(distinct) != 1:
        return whole
    (words,) = distinct
    if not words:
        return whole
    return f"shell:{'' if _count_naming_words(list(words)) else '='}{' '.join(words)}"


def _narrow_words(part: CommandPart) -> tuple[str, ...]:
    texts = [word.text for word in part.words]
    if not texts or not all(word.static and not _METACHARACTERS & set(word.text) for word in part.words):
        depth = _count_naming_words(texts)
        head = part.words[:depth] if depth else ()
        clean = bool(head) and all(word.static and not _METACHARACTERS & set(word.text) for word in head)
        return tuple(texts[:depth]) if clean else ()
    return tuple(texts[: _count_naming_words(texts) or len(texts)])


def _count_naming_words(texts: Sequence[str]) -> int:
    """How many words name what is done: `npm run test`, `git commit`, `pytest`; 0 when that is not known."""
    granting = get_program(texts[0] if texts else "").grants
    if granting is None:
        return 0
    subcommand = next(iter(texts[1:2]), "")
    if subcommand in granting.third:
        return 3 if len(texts) > 2 and not texts[2].startswith("-") else 0
    if granting.subcommands and subcommand not in granting.subcommands:
        return 0
    return (
        granting.depth
        if len(texts) >= granting.depth and not (granting.depth > 1 and subcommand.startswith("-"))
        else 0
    )


def suggest_prefix(parts: Sequence[CommandPart], grant: str) -> str | None:
    """A wider grant that may be chosen: the program and its subcommand, for one that does not run whatever it is
    told."""
    heads = {tuple(word.text for word in part.words[:2]) for part in parts if part.words}
    if len(heads) != 1 or not all(word.static for part in parts for word in part.words[:2]):
        return None
    program, *rest = heads.pop()
    record = get_program(program)
    depth = 0 if record.grants is None else record.grants.depth
    never = (record.runs_others and not depth) or (record.grants is not None and record.grants.never)
    if never or not _NEVER_BY_SUBCOMMAND.isdisjoint(rest) or not program.replace("-", "").replace("_", "").isalnum():
        return None
    subcommand = rest[0] if rest and rest[0].replace("-", "x").isalnum() and not rest[0].startswith("-") else None
    if subcommand is None and depth > 1:
        return None
    prefix = f"shell:{program} {subcommand}" if record.grants is not None and subcommand else f"shell:{program}"
    return prefix if prefix != grant else None
