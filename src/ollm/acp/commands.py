"""What slash commands say in an editor, which has threads and buttons in place of a terminal's keys."""

from __future__ import annotations

from pathlib import Path

from ollm.acp.options import build_commands
from ollm.runtime.base import CommandReply

FOLLOW_UPS = {
    "exit": "This session is saved; close the thread in your editor.",
    "new-session": "Start a new thread in your editor; this one stays as it is.",
    "open-session": "Open that session from the list of threads in your editor.",
}


def describe_reply(name: str, arguments: str, reply: CommandReply, directories: tuple[Path, ...]) -> str:
    """What a command came to; what only a terminal can do is said to be the editor's."""
    if name == "help" and not arguments.strip():
        return render_help(directories)
    return FOLLOW_UPS.get(reply.follow_up, reply.text)


def render_help(directories: tuple[Path, ...]) -> str:
    """The commands there are here."""
    lines = []
    for command in build_commands(directories):
        usage = f" {command['input']['hint']}" if "input" in command else ""
        lines.append(f"- `/{command['name']}{usage}`: {command['description']}")
    return "\n".join([*lines, "", "A message that starts with a slash is sent with two: `//etc is what?`."])
