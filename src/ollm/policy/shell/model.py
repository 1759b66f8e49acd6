"""Parts of a command line: simple commands and redirections, each with its working directory."""

from __future__ import annotations

from pathlib import Path

from ollm.domain.struct import Data
from ollm.policy.shell.words import ShellWord

Directories = tuple[Path, ...] | None  # where a command may be run; None when that is not known


class Assignment(Data, frozen=True):
    """`NAME=value` before a command or alone. `plain` is false for arrays, subscripts and `+=`."""

    name: str
    value: ShellWord
    plain: bool = True


class SimpleCommand(Data, frozen=True):
    """A simple command as it is in the line. `remarks` are reasons to ask that the line itself gives."""

    words: tuple[ShellWord, ...]
    text: str
    directories: Directories
    assignments: tuple[Assignment, ...] = ()
    remarks: tuple[str, ...] = ()
    piped: bool = False
    stdin: str | None = None


class Redirection(Data, frozen=True):
    """One redirection; `target` is a path or a descriptor."""

    operator: str
    target: ShellWord
    text: str
    directories: Directories


class CommandPart(Data, frozen=True):
    """Something to be judged: a command, a command inside another one, or a redirection.

    `remarks` make it at least ask. `locks` do too, and no grant or approval level answers them;
    `opens` are the paths they are about. `runs` are options
    that run or write: their places in `words`, with the reason; an allow rule covers them only by naming them.
    A `transparent` part is a harmless wrapper, judged by restricting rules alone. A `guess` is what the line may turn
    out to run: it can only forbid. `may_differ` says that more words may follow when it runs. `unknown` is what a
    reading command may do that only the kernel can hold it to: reasons to ask where it does not. `ungranted` are the
    reasons why no grant answers for it. `notes` are told with a question. `outside` is why it works only outside a
    sandbox.
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
    """A whole line. `remarks` are reasons to ask about the line as such."""

    parts: tuple[CommandPart, ...]
    remarks: tuple[str, ...] = ()
