"""Skills: folders `NAME/SKILL.md` with instructions for one kind of work, listed in the prompt and read on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ollm.domain.context import ContextEntry
from ollm.domain.front_matter import split_front_matter
from ollm.domain.struct import Data
from ollm.system.terminal_text import strip_controls

FILE_NAME = "SKILL.md"
MAX_SKILLS = 64
MAX_HEAD_BYTES = 8_192
MAX_LINE_CHARS = 200
CHARS_PER_TOKEN = 3
MAX_TOKENS = 400
MIN_WINDOW_TOKENS = 3_000
MIN_LIST_CHARS = 360
PRIORITY = 59.0
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_HEAD = "Skills: when one fits the request, read its file first and follow it."


class Skill(Data, frozen=True):
    """A skill, and how the model names its file."""

    name: str
    description: str
    path: str


def find_skills(directories: Sequence[Path], workspace: Path) -> list[Skill]:
    """All skills by name; of two with one name that of the earlier directory counts."""
    found: dict[str, Skill] = {}
    for directory in directories:
        for skill in _read_directory(directory, workspace):
            found.setdefault(skill.name, skill)
    return [found[name] for name in sorted(found)][:MAX_SKILLS]


def build_skills_entry(skills: Sequence[Skill], window: int) -> ContextEntry | None:
    """One line for each skill, as many as a small share of the window holds; None where there is nothing to say."""
    if window < MIN_WINDOW_TOKENS:
        return None
    left = max(min(window // 40, MAX_TOKENS) * CHARS_PER_TOKEN, MIN_LIST_CHARS) - len(_HEAD)
    lines = [f"- {skill.name}: {skill.description[: left // 4]} ({skill.path})" for skill in skills]
    shown: list[str] = []
    while lines and len(lines[0]) < left:
        left -= len(lines[0]) + 1
        shown.append(lines.pop(0))
    if not shown:
        return None
    more = [f"({len(lines)} more in .ollm/skills)"] if lines else []
    content = "\n".join([_HEAD, *shown, *more])
    return ContextEntry(key="skills", content=content, timestamp="", priority=PRIORITY, source="system")


def _read_directory(directory: Path, workspace: Path) -> Iterator[Skill]:
    try:
        folders = sorted(folder for folder in directory.iterdir() if re.fullmatch(_NAME, folder.name))
    except OSError:
        return
    for folder in folders:
        file = folder / FILE_NAME
        if file.is_file() and not file.is_symlink() and not folder.is_symlink():
            yield _read_skill(file, workspace)


def _read_skill(file: Path, workspace: Path) -> Skill:
    with file.open("rb") as opened:
        text = opened.read(MAX_HEAD_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    fields, body = split_front_matter(text)
    name = fields.get("name", "") if re.fullmatch(_NAME, fields.get("name", "")) else file.parent.name
    first = next((line.strip("# \t") for line in body.splitlines() if line.strip()), "")
    about = " ".join(strip_controls(fields.get("description") or first).split())
    path = str(file.relative_to(workspace)) if file.is_relative_to(workspace) else str(file)
    return Skill(name=name, description=about[:MAX_LINE_CHARS], path=path)
