"""Shell command lines taken apart into what they would run, read and write. Nothing here decides."""

from __future__ import annotations

from ollm.policy.shell_commands.analysis import analyse
from ollm.policy.shell_commands.model import Analysis, Part
from ollm.policy.shell_commands.words import Word

__all__ = ["Analysis", "Part", "Word", "analyse"]
