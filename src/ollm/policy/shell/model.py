"""Parts of a command line: simple commands and redirections, each with its working directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from pathlib import Path

from ollm.domain.struct import Data
from ollm.policy.shell.words import ShellWord

Directories = tuple[Path, ...] | None  # A command may run in any of these; None if unknown.


class Assignment(Data, frozen=True):
    """`NAME=value` before a command or alone. `plain` is false for arrays, subscripts and `+=`."""

    name: str
    value: ShellWord
    plain: bool = True


class SimpleCommand(Data, frozen=True):
    """A simple command as written in the line. `remarks` are reasons to ask that follow from the line itself."""

    words: tuple[ShellWord, ...]
    text: str
    directories: Directories
    assignments: tuple[Assignment, ...] = ()
    remarks: tuple[str, ...] = ()
    stdin: str | None = None


class Redirection(Data, frozen=True):
    """One redirection; `target` is a path or a descriptor."""

    operator: str
    target: ShellWord
    text: str
    directories: Directories


class CommandPart(Data, frozen=True):
    """A part of a line to judge: a command, a command inside another one, or a redirection.

    `remarks` make it at least ask. `locks` do too, and no grant or approval level answers them; `opens` are the paths
    they concern. `runs` are options that run or write: their indices in `words`, with the reason. An allow rule covers
    them only by naming them. A `transparent` part is a harmless wrapper, judged by restricting rules alone. A `guess`
    is a command the line may run: it can only forbid. `may_differ` means that more words may follow at run time.
    `unknown` are possible effects of a reading command that only the kernel can prevent: reasons to ask without a
    sandbox. `ungranted` are the reasons why no grant covers it. `notes` are shown with a question. `outside` is why it
    works only outside a sandbox.
    """

    words: tuple[ShellWord, ...]
    text: str
    directories: Directories
    remarks: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    runs: tuple[tuple[int, str], ...] = ()
    unknown: tuple[str, ...] = ()
    ungranted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    transparent: bool = False
    guess: bool = False
    may_differ: bool = False
    reads: bool = False
    write_target: str | None = None
    outside: str = ""


class CommandAnalysis(Data, frozen=True):
    """Analysis of a whole line. `remarks` are reasons to ask about the line as a whole. If the line is
    `unread`, it may name anything, and no grant or approval level answers those remarks."""

    parts: tuple[CommandPart, ...]
    remarks: tuple[str, ...] = ()
    unread: bool = False


_HARMLESS_NAMES = frozenset(
    {"CI", "NO_COLOR", "FORCE_COLOR", "LANG", "TZ", "TERM", "COLUMNS", "LINES", "DEBUG", "NODE_ENV"}
)
_CD_COMMANDS = frozenset({"cd", "pushd", "popd"})
_MAX_DIRECTORIES = 8


def is_harmless_variable(name: str) -> bool:
    """Return True if setting the variable makes no program run or write other files."""
    return name in _HARMLESS_NAMES or name.startswith("LC_")


class ShellScope:
    """State of a shell. `reached` are the directories if the last command succeeded: after `&&` no other ones count."""

    def __init__(self, directories: Directories, home: Path | None, assigned: dict[str, str] | None = None) -> None:
        self.directories = directories
        self.reached = directories
        self.home = home
        self.certain: dict[str, str] = {} if home is None else {"HOME": str(home)}
        self.assigned: dict[str, str] = dict(assigned or {})
        self.stdin: str | None = None

    def enter_subshell(self) -> ShellScope:
        """Return a copy for a subshell: changes there do not affect this scope."""
        twin = copy(self)
        twin.certain, twin.assigned = dict(self.certain), dict(self.assigned)
        return twin


def follow_cd(words: Sequence[ShellWord], directories: Directories, home: Path | None) -> Directories:
    """Return the directories after a command that succeeded."""
    texts = [word.text for word in words]
    while texts[:1] in (["command"], ["builtin"]):
        texts, words = texts[1:], words[1:]
    if not texts or texts[0] not in _CD_COMMANDS:
        return directories
    operands = [word for word in words[1:] if not (word.static and word.text.startswith("-") and word.text != "-")]
    if texts[0] == "popd" or (directories is None and not operands):
        return None
    if not operands:
        return (home,) if home is not None and texts[0] == "cd" else None
    target = operands[0]
    if not target.static or target.glob or target.text == "-" or target.text.startswith(("+", "-")):
        return None
    given = expand_home(target.text, home)
    if given is None or (directories is None and not given.startswith("/")):
        return None
    return tuple(dict.fromkeys(Path(os.path.normpath(start / given)) for start in directories or (Path("/"),)))


def merge_directories(one: Directories, other: Directories) -> Directories:
    if one is None or other is None:
        return None
    both = tuple(dict.fromkeys((*one, *other)))
    return both if len(both) <= _MAX_DIRECTORIES else None


def expand_home(text: str, home: Path | None) -> str | None:
    """Expand a leading `~`, or return None if it is another user's home or unknown."""
    if not text.startswith("~"):
        return text
    if home is None or (text != "~" and not text.startswith("~/")):
        return None
    return str(home / text[2:])
