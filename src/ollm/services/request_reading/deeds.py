"""What was in fact done in a turn. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ollm.domain.struct import Data


class Deeds(Data, frozen=True):
    """What was in fact done in a turn. `commands` are those that ran, with their exit codes, in their order."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # files the request names that do not exist
    commands: tuple[tuple[str, int], ...] = ()
    silent: tuple[str, ...] = ()  # those that succeeded and printed nothing
    since_change: tuple[tuple[str, int], ...] = ()  # those that ran after the last change of a file
    texts: Mapping[str, str] = {}  # of the files as they are now
    before: Mapping[str, str] = {}  # of those that were changed, as they were
    meant: tuple[str, ...] = ()  # files that the request is about without naming them
    failure: str = ""  # what the last command printed, where it failed


def has_command_changes(deeds: Deeds) -> bool:
    """Whether a command changed what no text shows: names, folders, bits."""
    return is_handled("", deeds) or any(
        code == 0 and re.match(r"\s*(?:mv|rm|cp|mkdir|git|touch|rmdir|tee|chmod|ln)\b", line)
        for line, code in deeds.commands
    )


def is_handled(name: str, deeds: Deeds) -> bool:
    """Whether a command did to a file what leaves its text as it is."""
    handled = rf"(?:^|[;&|]\s*)(?:chmod|touch|git|ln)\s[^;&|]*{re.escape(name)}"
    return any(code == 0 and re.search(handled, line) for line, code in deeds.commands)
