"""Run the checks of the settings: formatters after an edit, tests at the end of a turn until they pass."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ollm.config.settings import Check, OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.events import Event, Notice
from ollm.domain.text import format_count
from ollm.domain.tools import ErrorInfo, ToolResult
from ollm.runtime.base import ChangeWatch
from ollm.services.background_jobs import BackgroundJobs
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery.patterns import compile_globs
from ollm.tools.framework.base import ToolContext
from ollm.tools.framework.output import clean_text, disarm_template_marks, trim_output
from ollm.tools.shell import Shell

REPORT_LIMITS = OutputSettings(max_chars=4_000, max_lines=100)


class Checks:
    """The checks of a conversation. Each runs like an approved shell command, in the working box. One without `files`
    runs at the end of every turn."""

    def __init__(
        self,
        checks: Sequence[Check],
        context: Callable[[], ToolContext],
        jobs: Callable[[], BackgroundJobs],
        ledger: Callable[[], EditLedger],
        changes: Callable[[], ChangeWatch],
        emit: Callable[[Event], None],
    ) -> None:
        self._checks = checks
        self._get_context = context
        self._get_jobs = jobs
        self._get_ledger = ledger
        self._get_changes = changes
        self._emit = emit
        self._changed: dict[str, None] = {}
        self._rounds: dict[int, int] = {}
        self.failing = ""  # The model could not make this check pass in this turn.

    def begin_turn(self) -> None:
        self._changed, self._rounds, self.failing = {}, {}, ""

    async def check_edit(self, path: Path, in_editor: bool) -> str:
        """Note a changed file and run the checks for its edit, unless an editor has its text. Returns the failures."""
        workspace = self._get_context().workspace
        if not path.is_relative_to(workspace):
            return ""
        name = str(path.relative_to(workspace))
        self._changed[name] = None
        done = await self._run_matching("edit", [name] if not in_editor else [])
        return "\n".join(failure for _, _, failure in done if failure)

    async def check_turn(self) -> str:
        """Run the checks for the end of a turn. Returns the failures that the model should fix now, or ""."""
        if not any(check.when == "turn" and (self._changed or not check.files) for check in self._checks):
            return ""
        names = [name for name in self._changed if os.path.lexists(self._get_context().workspace / name)]
        await self._get_changes().before_change(None)
        try:
            done = await self._run_matching("turn", names)
        finally:
            await self._get_changes().after_changes()
        wanted = [failure for number, check, failure in done if self._wants_round(number, check, failure)]
        return "\n\n".join([*wanted, "Fix this, then finish."]) if wanted else ""

    def _wants_round(self, number: int, check: Check, failure: str) -> bool:
        """Tell the person the outcome. Return True if the model gets another round for this check."""
        rounds = self._rounds[number] = self._rounds.get(number, 0) + 1
        if not failure:
            self._emit(Notice(level="info", text=f"Check passed: {check.run}"))
        elif rounds <= check.max_rounds:
            text = f"Check failed: {check.run}. The model gets its output (round {rounds} of {check.max_rounds})."
            self._emit(Notice(level="info", text=text))
        else:
            self.failing = check.run
            text = f"Check still fails: {check.run}. Stopped after {format_count(check.max_rounds, 'round')}."
            self._emit(Notice(level="warning", text=text))
        return bool(failure) and rounds <= check.max_rounds

    async def _run_matching(self, when: str, names: list[str]) -> list[tuple[int, Check, str]]:
        """Run the checks that apply to these files. Returns each with its failure, or "" if it passed."""
        done = []
        for number, check in enumerate(self._checks):
            found = self._match_files(check, names) if check.when == when else []
            if found or (check.when == when and not check.files):
                if when == "turn":
                    self._emit(Notice(level="info", text=f"Running check: {check.run}"))
                done.append((number, check, _describe_failure(check, await self._run(check, found))))
        return done

    def _match_files(self, check: Check, names: list[str]) -> list[str]:
        try:
            globs = compile_globs((check.files,) if isinstance(check.files, str) else check.files)
        except ToolFailure as failure:
            self._emit(Notice(level="warning", text=f"The check {check.run!r} does not run: {failure}"))
            return []
        return globs.select("", names) if globs else []

    async def _run(self, check: Check, names: list[str]) -> ToolResult:
        context, ledger = self._get_context(), self._get_ledger()
        paths = [context.workspace / name for name in names]
        before = _read_files(paths)
        quoted = " ".join(shlex.quote(f"./{name}" if name.startswith("-") else name) for name in names)
        try:
            command = Shell(command=check.run.replace("{files}", quoted), timeout=check.timeout)
            return await command.run(context, self._get_jobs())
        except (ToolFailure, ValueError) as error:
            return ToolResult(llm_content=str(error), error=ErrorInfo(type="Denied", message=str(error)))
        finally:
            for path, content in _read_files(paths).items():
                if content != before.get(path) and not ledger.is_stale(path, path.stat(), before.get(path, b"")):
                    ledger.accept_change(path, content)


def _read_files(paths: Iterable[Path]) -> dict[Path, bytes]:
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = path.read_bytes()
    return found


def _describe_failure(check: Check, result: ToolResult) -> str:
    if result.error is None and not result.exit_code:
        return ""
    output = trim_output(disarm_template_marks(clean_text(result.llm_content)), REPORT_LIMITS, keep="ends").text
    return f"The check `{check.run}` failed:\n{output}"
