"""Shell command lines taken apart into what they would run, read and write. Nothing here decides."""

from __future__ import annotations

from ollm.policy.shell.analysis import analyse
from ollm.policy.shell.model import Analysis, Part
from ollm.policy.shell.words import Word

__all__ = ["Analysis", "Part", "Word", "analyse"]
