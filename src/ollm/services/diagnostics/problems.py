"""Problems in files as language servers report them: parsing, comparing, rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ollm.domain.struct import Data
from ollm.system.terminal_text import flatten_text

MAX_PROBLEMS_PER_FILE = 500
MAX_MESSAGE_CHARS = 300
ERROR, WARNING = 1, 2
SEVERITIES = {ERROR: "error", WARNING: "warning", 3: "info", 4: "hint"}


class FileProblem(Data, frozen=True):
    """One problem. `line` and `column` count from 1."""

    path: str
    line: int
    column: int
    severity: int
    message: str
    code: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """The part that stays the same when lines move."""
        return self.code, self.message

    def render(self, workspace: Path, *, severity: bool = False) -> str:
        path = Path(self.path)
        name = path.relative_to(workspace) if path.is_relative_to(workspace) else path
        code = f" ({self.code})" if self.code else ""
        kind = f"{SEVERITIES.get(self.severity, 'error')}: " if severity else ""
        return flatten_text(f"{name}:{self.line}:{self.column} {kind}{self.message}{code}")


def parse_problems(path: str, items: Any) -> tuple[FileProblem, ...]:
    found = items if isinstance(items, list) else []
    parsed = (_parse_problem(path, item) for item in found[: MAX_PROBLEMS_PER_FILE * 4] if isinstance(item, dict))
    return tuple(sorted(parsed, key=lambda problem: (problem.severity, problem.line))[:MAX_PROBLEMS_PER_FILE])


def _parse_problem(path: str, item: dict[str, Any]) -> FileProblem:
    match item.get("range"):
        case {"start": {"line": int(line), "character": int(column)}}:
            place = line + 1, column + 1
        case _:
            place = 1, 1
    code, severity = item.get("code"), item.get("severity")
    lines = (" ".join(line.split()) for line in str(item.get("message", "")).splitlines())
    message = "; ".join(filter(None, lines))[:MAX_MESSAGE_CHARS]
    return FileProblem(
        path=path,
        line=place[0],
        column=place[1],
        severity=severity if isinstance(severity, int) else ERROR,
        message=message,
        code=str(code)[:80] if isinstance(code, str | int) else "",
    )


def list_errors(problems: Iterable[FileProblem]) -> list[FileProblem]:
    return [problem for problem in problems if problem.severity == ERROR]


def find_new_errors(before: Sequence[FileProblem], now: Sequence[FileProblem]) -> list[FileProblem]:
    """List the errors that are there more often than before; of equal ones, those on lines that had none."""
    left = Counter(problem.identity for problem in before)
    lines = {(problem.identity, problem.line) for problem in before}
    new: list[FileProblem] = []
    for problem in sorted(now, key=lambda one: (one.identity, one.line) not in lines):
        if left[problem.identity] > 0:
            left[problem.identity] -= 1
        else:
            new.append(problem)
    return sorted(new, key=lambda problem: (problem.path, problem.line))
