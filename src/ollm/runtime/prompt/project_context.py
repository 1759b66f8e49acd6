"""Context entries about the project: instruction files and skills (S5.6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ollm.domain.context import ContextEntry
from ollm.domain.errors import OllmError
from ollm.domain.struct import Data
from ollm.domain.text import split_front_matter
from ollm.policy.trust import find_instruction_file
from ollm.system.paths import Boundary
from ollm.system.terminal_text import strip_controls

MAX_FILE_BYTES = 65_536
MAX_OUTLINE_HEADINGS = 24
INSTRUCTIONS_PRIORITY = 60.0  # They come before the user's own entries.


def find_instruction_files(workspace: Path, directory: Path | None = None) -> list[Path]:
    """Find instruction files, outermost first. A directory outside the workspace counts as the workspace itself."""
    inside = directory is not None and directory.is_relative_to(workspace)
    steps = directory.relative_to(workspace).parts if inside and directory is not None else ()
    places = [workspace.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]
    return [file for place in places if (file := find_instruction_file(place)) is not None]


def read_project_instructions(
    boundary: Boundary, directory: Path | None = None
) -> tuple[list[ContextEntry], list[str]]:
    """Return the entries to add, and warnings about unusable files. Only for trusted workspaces."""
    entries: list[ContextEntry] = []
    warnings: list[str] = []
    for depth, file in enumerate(find_instruction_files(boundary.workspace, directory)):
        name = file.relative_to(boundary.workspace).as_posix()
        try:
            with boundary.open_file(str(file)) as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
        except (OllmError, OSError) as error:
            warnings.append(f"Skipped {name}: {error}")
            continue
        if len(data) > MAX_FILE_BYTES:
            warnings.append(f"Using only the first {MAX_FILE_BYTES // 1024} KiB of {name}.")
        text = _decode_text(data[:MAX_FILE_BYTES])
        priority = INSTRUCTIONS_PRIORITY - depth / 100  # Nearer files come later and take precedence.
        if text:
            entries.append(ContextEntry(key=name, content=text, timestamp="", priority=priority, source="system"))
    return entries, warnings


def _decode_text(data: bytes) -> str:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    return strip_controls(text).strip()


def shorten_instructions(entry: ContextEntry, tokens: int, cost: Callable[[str], int]) -> ContextEntry | None:
    """Shorten a long file to its beginning and the headings of the rest. Return None if not even that fits."""
    lines = entry.content.splitlines()
    for kept in (64, 32, 16, 8, 4, 2):
        rest = [line.strip() for line in lines[kept:] if line.startswith("#")][:MAX_OUTLINE_HEADINGS]
        told = f"[{len(lines) - kept} more lines; read {entry.key} for them" + (". They are about:]" if rest else "]")
        shown = msgspec.structs.replace(entry, content="\n".join((*lines[:kept], told, *rest)))
        if len(lines) > kept and cost(shown.content) <= tokens:
            return shown
    return None


SKILL_FILE_NAME = "SKILL.md"
MAX_SKILLS = 64
MAX_HEAD_BYTES = 8_192
MAX_LINE_CHARS = 200
MAX_TOKENS = 400
MIN_WINDOW_TOKENS = 3_000
MIN_LIST_CHARS = 360
CHARS_PER_TOKEN = 3
SKILLS_PRIORITY = 59.0
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_HEAD = "Skills: when one fits the request, read its file first and follow it."


class Skill(Data, frozen=True):
    """A skill, with the path by which the model names its file."""

    name: str
    description: str
    path: str


def find_skills(directories: Sequence[Path], workspace: Path) -> list[Skill]:
    """Find all skills, sorted by name. If two have the same name, the earlier directory wins."""
    found: dict[str, Skill] = {}
    for directory in directories:
        for skill in _read_directory(directory, workspace):
            found.setdefault(skill.name, skill)
    return [found[name] for name in sorted(found)][:MAX_SKILLS]


def build_skills_entry(skills: Sequence[Skill], window: int) -> ContextEntry | None:
    """List the skills, one per line, in a small share of the window. Return None if there is nothing to list."""
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
    return ContextEntry(key="skills", content=content, timestamp="", priority=SKILLS_PRIORITY, source="system")


def _read_directory(directory: Path, workspace: Path) -> Iterator[Skill]:
    try:
        folders = sorted(folder for folder in directory.iterdir() if re.fullmatch(_NAME, folder.name))
    except OSError:
        return
    for folder in folders:
        file = folder / SKILL_FILE_NAME
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
