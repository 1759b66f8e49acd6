"""Read task sets: projects, requests, checks and a known solution of each task, from the TOML files in `sets/`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tasks.checks import Outcome, is_finished

FOLDER = Path(__file__).parent / "sets"
ANSWER_CHECKS = ("says", "says_any", "says_number", "answer_matches")
UNTUNED_SETS = ("held_back", "strangers_second", "guests_second")
Change = str | Sequence[str] | bool


@dataclass(frozen=True)
class Task:
    """`twin` names the English task that a translated one repeats."""

    set_name: str
    name: str
    kind: str
    request: str
    files: Mapping[str, str]
    checks: Sequence[Mapping[str, Any]]
    answer: str
    solution: Mapping[str, Change]
    steps: int = 1
    twin: str = ""

    def write_files(self, folder: Path) -> None:
        for path, text in self.files.items():
            write_file(folder / path, text)

    def is_finished(self, folder: Path, answer: str) -> bool:
        return is_finished(self.checks, Outcome(self.files, folder, answer))

    @property
    def file_checks(self) -> list[Mapping[str, Any]]:
        return [check for check in self.checks if check["check"] not in ANSWER_CHECKS]

    def judge_files(self, folder: Path) -> bool:
        return is_finished(self.file_checks, Outcome(self.files, folder, ""))

    def solve(self, folder: Path) -> None:
        """Apply the known solution: the new text, pairs of old and new text ("" appends), or false to delete."""
        for path, change in self.solution.items():
            if change is False:
                (folder / path).unlink()
            elif isinstance(change, str):
                write_file(folder / path, change)
            else:
                write_file(folder / path, change_text(self.files[path], change))


def change_text(text: str, change: Any) -> str:
    for old, new in zip(change[::2], change[1::2], strict=True):
        if old not in text:
            raise ValueError(f"the solution replaces what is not there: {old}")
        text = text.replace(old, new) if old else text + new
    return text


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def load_set(name: str) -> list[Task]:
    """Read one set, `all` for the three that nobody tuned to, or `twins_of_translated`."""
    if name == "all":
        return [task for each in UNTUNED_SETS for task in load_set(each)]
    if name == "twins_of_translated":
        twins = {task.twin for task in load_set("translated")}
        return [task for task in load_set("all") if task.name in twins]
    data = read_data(name)
    return [read_task(name, entry, data.get("projects", {})) for entry in data["tasks"]]


def read_task(set_name: str, entry: Mapping[str, Any], projects: Mapping[str, Mapping[str, str]]) -> Task:
    fields = dict(entry)
    if twin := fields.get("twin"):
        original = next(task for task in load_set("all") if task.name == twin)
        shared = {"kind": original.kind, "steps": original.steps, "files": original.files, "checks": original.checks}
        return Task(set_name, answer=original.answer, solution=original.solution, **{**shared, **fields})
    project = fields.pop("project")
    if ":" in project:  # a project of another set
        other, project = project.split(":")
        projects = read_data(other)["projects"]
    return Task(set_name, files=projects[project], **fields)


def read_data(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def set_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))
