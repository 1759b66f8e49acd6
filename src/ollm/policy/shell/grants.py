"""Grants for shell commands: `shell:npm run test` covers commands that begin with these words, nothing around them;
`shell:=rm -r build` covers this command alone."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.policy.grants import Grant
from ollm.policy.shell import CommandPart
from ollm.policy.shell.runners import RUNNERS
from ollm.policy.shell.wrapper_table import WRAPPERS
from ollm.policy.shell.wrappers import SHELLS

_GRANT_WORDS: dict[str, int] = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "git", "cargo", "go", "make"), 2),
    **dict.fromkeys(("dotnet", "gradle", "mvn", "gh", "just", "tox"), 2),
    **dict.fromkeys(("pytest", "mypy", "ruff", "eslint", "prettier", "tsc", "jest", "vitest", "black", "flake8"), 1),
}
_THREE_WORD_COMMANDS = {
    ("npm", "run"),
    ("pnpm", "run"),
    ("yarn", "run"),
    ("bun", "run"),
    ("docker", "compose"),
    ("uv", "run"),
    ("gh", "pr"),
    ("gh", "issue"),
    ("npm", "exec"),
}
_PACKAGE_SCRIPTS = frozenset({"test", "start", "run", "build", "lint", "ls", "outdated"})
_HARMLESS_SUBCOMMANDS: dict[
    str, frozenset[str]
] = {  # what is granted with any words after it; anything else as it stands
    "git": frozenset({"add", "commit", "fetch", "pull", "switch", "stash", "merge", "log", "diff", "status", "show"}),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _PACKAGE_SCRIPTS),
    "cargo": frozenset({"build", "test", "check", "clippy", "fmt", "doc", "bench", "tree"}),
    "go": frozenset({"test", "build", "vet", "fmt", "list"}),
}
_INTERPRETERS = frozenset({"python", "python3"})
_NEVER_BY_NAME = frozenset(
    {*WRAPPERS, *SHELLS, *RUNNERS, "rm", "dd", "curl", "wget", "mv", "chmod", "chown"}
) - frozenset(_GRANT_WORDS)
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
    if not texts:
        return 0
    if texts[0] in _INTERPRETERS and texts[1:2] == ["-m"]:
        return 3
    depth = _GRANT_WORDS.get(texts[0], 0)
    if texts[0] in _HARMLESS_SUBCOMMANDS and not _HARMLESS_SUBCOMMANDS[texts[0]].intersection(texts[1:2]):
        return 3 if tuple(texts[:2]) in _THREE_WORD_COMMANDS and len(texts) > 2 else 0
    if tuple(texts[:2]) in _THREE_WORD_COMMANDS:
        depth = 3
    return depth if depth <= len(texts) and not any(text.startswith("-") for text in texts[1:depth]) else 0


def suggest_prefix(parts: Sequence[CommandPart], grant: str) -> str | None:
    """A wider grant that may be chosen: the program and its subcommand, for one that does not run whatever it is
    told."""
    heads = {tuple(word.text for word in part.words[:2]) for part in parts if part.words}
    if len(heads) != 1 or not all(word.static for part in parts for word in part.words[:2]):
        return None
    program, *rest = heads.pop()
    if (
        program in _NEVER_BY_NAME
        or (rest[:1] and rest[0] in _NEVER_BY_SUBCOMMAND)
        or not program.replace("-", "").replace("_", "").isalnum()
    ):
        return None
    subcommand = rest[0] if rest and rest[0].replace("-", "x").isalnum() and not rest[0].startswith("-") else None
    if subcommand is None and program in _GRANT_WORDS and _GRANT_WORDS[program] > 1:
        return None
    named = program in _GRANT_WORDS or program in ("docker", "kubectl", "uv", "pip", "poetry", "terraform", "gh")
    prefix = f"shell:{program} {subcommand}" if named and subcommand else f"shell:{program}"
    return prefix if prefix != grant else None
