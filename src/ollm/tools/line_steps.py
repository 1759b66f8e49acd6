"""The steps of a command line that changes a git repository: each runs in its own sandbox, one after another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ollm.system.path_names import is_inside
from ollm.system.sandbox.git_line import ADDING_VERBS
from ollm.system.sandbox.repositories import NoRepository, Repository

if TYPE_CHECKING:
    from ollm.system.sandbox.sandbox import Sandbox
    from ollm.tools.git_lines import LinePart


class LineStep(NamedTuple):
    """A script to run in a folder; in a `repository` if its git `verbs` may write one."""

    script: str
    folder: str
    repository: Repository | None = None
    verbs: frozenset[str] = frozenset()


class LineSteps:
    """Decides as bash does which parts of a line run. Iterate over the steps; set `status` to the exit code of each
    before the next. `said` is what `cd` printed, `refusal` why git cannot write the repository, or ""."""

    def __init__(self, parts: Sequence[LinePart], folder: str, sandbox: Sandbox) -> None:
        self._parts = parts
        self._folder = folder
        self._sandbox = sandbox
        self._prelude: list[str] = []
        self.status = 0
        self.said = ""
        self.refusal = ""

    def __iter__(self) -> Iterator[LineStep]:
        index = 0
        while index < len(self._parts):
            part = self._parts[index]
            index += 1
            if self._is_skipped(part):
                continue
            if part.kind == "prelude":
                self._prelude.append(part.text)
                self.status = 0
            elif part.kind == "cd" and self._enter(part.folder):
                pass
            else:
                parts, repository = self._take_group(index - 1)
                index += len(parts) - 1
                part = parts[-1]
                verbs = frozenset(one.verb for one in parts)
                yield LineStep(self._render(parts), self._folder, repository, verbs)
            if self._stops_at_errors and self.status and part.is_last:
                return

    def _is_skipped(self, part: LinePart) -> bool:
        return (part.joiner == "&&" and self.status != 0) or (part.joiner == "||" and self.status == 0)

    @property
    def _stops_at_errors(self) -> bool:
        return any("e" in word for text in self._prelude if text.startswith("set ") for word in _list_flags(text))

    def _enter(self, folder: str) -> bool:
        """Change the folder of the following steps. Returns False for one outside, which only a sandbox shows."""
        target = os.path.normpath(os.path.join(self._folder, folder))
        if not is_inside(os.path.realpath(target), self._sandbox.workspace):
            return False
        self.status = 0
        if os.path.isdir(target):
            self._folder = target
        else:
            self.status = 1
            self.said = f"bash: line 1: cd: {folder}: No such file or directory\n"
        return True

    def _take_group(self, start: int) -> tuple[Sequence[LinePart], Repository | None]:
        """Take the parts that run in one sandbox. One that leaves the workspace takes all that follow."""
        first = self._parts[start]
        if first.kind == "cd":
            return self._parts[start:], None
        taken = [first]
        repository = self._find_repository(first)
        decided = first.kind != "any"
        for part in self._parts[start + 1 :]:
            stops = part.joiner == ";" and self._stops_at_errors
            if stops or part.kind in ("cd", "prelude") or taken[-1].verb in ADDING_VERBS:
                break
            if part.kind != "any":
                found = self._find_repository(part)
                if decided and found != repository:
                    break
                repository, decided = found, True
            taken.append(part)
        return taken, repository

    def _find_repository(self, part: LinePart) -> Repository | None:
        if part.kind != "git":
            return None
        try:
            return self._sandbox.find_repository(os.path.realpath(os.path.join(self._folder, part.folder)))
        except NoRepository as reason:
            self.refusal = str(reason) or self.refusal
        except OSError as error:
            self.refusal = f"the repository cannot be read: {error}"
        return None

    def _render(self, parts: Sequence[LinePart]) -> str:
        pieces = [*self._prelude]
        if self.status and "?" in parts[0].text and not self._stops_at_errors:
            pieces.append(f"(exit {self.status})")  # The first part reads this as `$?`.
        for part in parts:
            group = f"{{ {part.text}\n}}" if "\n" in part.text else part.text  # Braces make bash forget PIPESTATUS.
            if part is parts[0] or part.joiner == ";":
                pieces.append(group)
            else:
                pieces[-1] += f" {part.joiner} {group}"
        return "\n".join(pieces)


def _list_flags(text: str) -> list[str]:
    words = text.removesuffix(";").split()[1:]
    named = ["-e" for name in words if name == "errexit"]
    return [word for word in (*words, *named) if word.startswith("-")]
