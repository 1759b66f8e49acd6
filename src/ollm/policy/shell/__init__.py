"""Shell command lines taken apart into what they would run, read and write. Nothing here decides."""

from __future__ import annotations

from ollm.policy.shell.analysis import analyse_command
from ollm.policy.shell.model import CommandAnalysis, CommandPart
from ollm.policy.shell.words import ShellWord

__all__ = ["CommandAnalysis", "CommandPart", "ShellWord", "analyse_command"]
