"""Commands that only look, as the tools that do the same: for modes in which nothing may be run."""

from __future__ import annotations

import shlex

from ollm.providers.base import CallPiece


def translate_command(command: str) -> CallPiece:
    """`cat`, `ls` and `grep` in their plain forms; anything else stays a command, which is then refused."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    plain = [word for word in words[1:] if not word.startswith("-")]
    match words[:1]:
        case ["cat" | "head" | "tail" | "less"] if len(plain) == 1:
            return CallPiece("read_file", {"path": plain[0]})
        case ["ls"] if len(plain) <= 1:
            return CallPiece("ls", {"path": plain[0] if plain else "."})
        case ["grep" | "rg"] if 0 < len(plain) <= 2:
            return CallPiece("grep", {"pattern": plain[0], "path": plain[1] if len(plain) == 2 else "."})
    return CallPiece("shell", {"command": command})
