"""From what was typed to what is sent: folded pastes unfolded, `@file` attached."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ollm.runtime.base import Attachment

FOLD_LINES = 8
FOLD_CHARACTERS = 1_200
LARGEST = 200_000
_MENTION = re.compile(r"(?:^|(?<=[\s(]))@([^\s@]+)")


class Pastes:
    """Long pasted blocks stand in the input as a chip, and are sent whole."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def fold(self, text: str) -> str:
        lines = text.count("\n") + 1
        if lines < FOLD_LINES and len(text) < FOLD_CHARACTERS:
            return text
        chip = f"[pasted {lines} lines #{len(self._kept) + 1}]"
        self._kept[chip] = text
        return chip

    def unfold(self, text: str) -> str:
        for chip, kept in self._kept.items():
            text = text.replace(chip, kept)
        return text


def mentioned(text: str, workspace: Path, read: Callable[[Path], bytes]) -> tuple[list[Attachment], list[str]]:
    """The files named with `@`, and what could not be attached."""
    attachments: list[Attachment] = []
    problems: list[str] = []
    for name in dict.fromkeys(_MENTION.findall(text)):
        path = workspace / name.rstrip(".,;:)")
        if not path.exists():
            continue
        try:
            data = read(path)
        except OSError as error:
            problems.append(f"@{name} was not attached: {error.strerror or error}")
            continue
        if b"\0" in data[:8192]:
            problems.append(f"@{name} was not attached: it is not a text")
            continue
        cut = " (the beginning)" if len(data) > LARGEST else ""
        attachments.append(Attachment(name=f"{name}{cut}", text=data[:LARGEST].decode("utf-8", "replace")))
    return attachments, problems


def read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST + 1)
