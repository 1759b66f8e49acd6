"""Commands that only look, as the tools that do the same: for modes in which nothing may be run, and for skills."""

from __future__ import annotations

import shlex

from ollm.providers.base import CallPiece

SKILLS_FOLDER = "/skills/"


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


def find_skill_reading(command: str) -> CallPiece | None:
    """`cat` of a file of a skill outside the workspace as `read_file`, which needs no leave there; None for others."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) != 2 or words[0] != "cat" or not words[1].startswith("/") or SKILLS_FOLDER not in words[1]:
        return None
    return CallPiece("read_file", {"path": words[1]})
