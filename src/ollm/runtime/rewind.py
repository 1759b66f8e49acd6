"""Rewinds a session, open or closed, and describes the effects on files for the chat, the command and the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ollm.domain.errors import OllmError, StorageError, UsageError
from ollm.domain.messages import put_in_fence
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.runtime.changes import describe_redo, find_redoable_step, find_user_message, is_rewound, make_redo_step
from ollm.system.paths import show_name

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.domain.session import Session
    from ollm.runtime.editor_rewind import EditorRewind
    from ollm.services.file_checkpoints.restore import RestoreKind, RestoreResult
    from ollm.services.file_checkpoints.service import FileCheckpoints
    from ollm.services.file_checkpoints.tree import PathChange, RestorePlan, SkippedPath

MAX_LISTED_PATHS = 20
MAX_DIFF_CHARS = 200_000
Step = dict[str, Any]
RewindScope = Literal["talk", "files", "both"]


class RewindRequest(Data, frozen=True):
    """A rewind to before message `number`, or its preview without `yes`. Without a `scope` files go back too if they
    can."""

    number: int
    scope: RewindScope | None = None
    diff: bool = False
    force: bool = False
    yes: bool = False


class RewindOutcome(Data, frozen=True):
    """Outcome of a rewind or a redo, done or previewed; `text` describes it for people."""

    session_id: str
    message_id: int
    what: RewindScope
    dry_run: bool
    files: list[dict[str, str]]
    skipped: list[dict[str, str]]
    text: str


class RewindFlow:
    """Rewind and redo of one session. `record` changes the context as a step says and records the step; `editor` has
    files open that are not saved."""

    def __init__(
        self,
        session: Session,
        checkpoints: Lazy[FileCheckpoints],
        record: Callable[[Step], Awaitable[None]],
        editor: EditorRewind | None = None,
    ) -> None:
        self.session = session
        self._checkpoints = checkpoints
        self._record = record
        self._editor = editor

    async def rewind(self, request: RewindRequest) -> RewindOutcome:
        """Rewind to before a message, or preview it. A preview writes nothing."""
        number = request.number
        find_user_message(self.session, number)
        plan, note = await self._plan_files(request)
        scope = request.scope or ("both" if plan and (plan.steps or plan.skipped) else "talk")
        if not request.yes:
            lines = [*await self._describe_preview(request, scope, plan), note]
            return self.make_outcome(number, scope, lines, plan, dry_run=True)
        done: RestorePlan | RestoreResult | None = plan
        head = f"Message {number} is out of the context already."
        if (plan and plan.steps) or not (scope == "files" or is_rewound(self.session, number)):
            step: Step = {"step": "rewind-files" if scope == "files" else "rewind", "before": number}
            done, head = await self._run(step, scope, plan), f"Rewound to before message {number}."
        head = describe_outcome(number, done) if scope == "files" else head
        return self.make_outcome(number, scope, [head, describe_result(done) if done else "", note], done)

    async def redo(self, *, force: bool, dry_run: bool = False) -> RewindOutcome:
        """Undo the last rewind, or preview that."""
        step = find_redoable_step(self.session, force=force)
        number, scope, plan = step["before"], find_scope(step), None
        if step.get("record") is not None:
            plan = await self._plan(number, step["record"], force=force)
        if dry_run:
            lines = [f"This takes back the rewind to before message {number}.", describe_plan(plan) if plan else ""]
            return self.make_outcome(number, scope, lines, plan, dry_run=True)
        result = await self._run(make_redo_step(step, {}), scope, plan)
        return self.make_outcome(
            number, scope, [describe_redo(step), describe_result(result) if result else ""], result
        )

    def make_outcome(
        self,
        number: int,
        what: RewindScope,
        lines: Iterable[str],
        done: RestorePlan | RestoreResult | None,
        *,
        dry_run: bool = False,
    ) -> RewindOutcome:
        data = to_plain_data(done) if done else {"files": [], "skipped": []}
        text, known = "\n\n".join(filter(None, lines)), self.session.session_id
        return RewindOutcome(session_id=known, message_id=number, what=what, dry_run=dry_run, text=text, **data)

    async def _plan_files(self, request: RewindRequest) -> tuple[RestorePlan | None, str]:
        """Return the plan for the files, or what to say if they cannot go back. Raises that if files were asked for."""
        if request.scope == "talk":
            return None, ""
        try:
            return await self._plan(request.number, force=request.force), ""
        except OllmError as error:
            if request.scope is not None:
                raise
            if request.yes and not self._checkpoints.get().reason_off:
                action = f"Only the conversation goes back with /rewind {request.number} talk yes."
                raise UsageError(error.message, action=action) from error
            return None, f"Files stay as they are: {error.message}"

    async def _plan(self, number: int, record: int | None = None, *, force: bool) -> RestorePlan | None:
        """Plan the files of a rewind to before message `number`, or of the redo of `record`."""
        checkpoints, session_id = self._checkpoints.get(), self.session.session_id
        if record is None:
            plan = await asyncio.to_thread(checkpoints.plan_rewind, session_id, number, force=force)
        else:
            plan = await asyncio.to_thread(checkpoints.plan_redo, session_id, record, force=force)
        if self._editor is None:
            return plan
        number = plan.message_id if plan else number
        records = checkpoints.list_records(session_id)
        since = [one for one in records if (one.message_id >= number if record is None else one.number >= record)]
        return await self._editor.revise_plan(plan, since, number, force=force)

    async def _describe_preview(
        self, request: RewindRequest, scope: RewindScope, plan: RestorePlan | None
    ) -> list[str]:
        number = request.number
        talk = f"This removes message {number} and everything after it from the context; the history stays."
        lines = [talk] if scope != "files" else []
        if scope == "talk" or plan is None:
            return [*lines, "Your files stay." if scope == "talk" else f"No files were changed since message {number}."]
        lines.append(describe_plan(plan))
        if request.diff and (diffs := await asyncio.to_thread(render_diffs, self._checkpoints.get(), plan.files)):
            lines.append(put_in_fence("\n".join(diffs), "diff"))
        return lines

    async def _run(self, step: Step, scope: RewindScope, plan: RestorePlan | None) -> RestoreResult | None:
        """Restore the files of the plan, and do and record the step."""
        result = None
        if plan is not None and scope != "talk":
            kind: RestoreKind = "rewind" if step["step"].startswith("rewind") else "redo"
            newest = max((message.id for message in self.session.messages), default=0)
            write = self._editor.write if self._editor and plan.in_editor else None
            record, result, restore_id = await asyncio.to_thread(
                self._checkpoints.get().restore, self.session.session_id, newest, plan, scope, kind, write
            )
            done = {"record": record.number} if kind == "rewind" else {"left": len(result.skipped)}
            step |= {"restoreId": restore_id, **done}
        await self._record(step)
        if result and scope != "files":
            await asyncio.to_thread(self._checkpoints.get().finish_restore)
        return result


def find_scope(step: Step) -> RewindScope:
    if step["step"] != "rewind":
        return "files"
    return "both" if step.get("record") is not None else "talk"


def describe_plan(plan: RestorePlan) -> str:
    """Describe the planned changes to the files, path by path."""
    files = plan.files
    head = f"{format_count(len(files), 'file')} would change back:" if files else "No files would change back."
    scope = describe_scope(plan)
    return "\n".join([head, *list_changes(files), *list_skipped(plan.skipped), *(["", scope] if scope else [])])


def describe_result(result: RestorePlan | RestoreResult) -> str:
    """Describe the changes made to the files."""
    files = result.files
    deleted = sum(change.after is None for change in files)
    counts = {"restored": len(files) - deleted, "deleted": deleted}
    parts = [f"{format_count(count, 'file')} {verb}" for verb, count in counts.items() if count]
    head = f"{', '.join(parts)}." if files else "No files were changed."
    return "\n".join([head, *list_skipped(result.skipped)])


def describe_outcome(number: int, result: RestorePlan | RestoreResult | None) -> str:
    """Describe whether the files are now as before a message. Without a result nothing had changed."""
    if result is None or not result.skipped:
        return f"Files are as they were before message {number}."
    return f"{'Not all' if result.files else 'No'} files went back to before message {number}."


def describe_scope(plan: RestorePlan) -> str:
    """Describe the files that a rewind does not cover."""
    left_out = []
    if plan.ignored:
        left_out.append(format_count(plan.ignored, "ignored file or folder", "ignored files or folders"))
    if plan.uncovered:
        left_out.append(f"{format_count(plan.uncovered, 'file')} too large to save, unreadable or not regular")
    return f"Not covered: {' and '.join(left_out)}." if left_out else ""


def list_changes(changes: Sequence[PathChange]) -> list[str]:
    lines = [f"- `{change.letter}` {show_name(change.path)}" for change in changes[:MAX_LISTED_PATHS]]
    return [*lines, *count_rest(len(changes))]


def list_skipped(skipped: Sequence[SkippedPath]) -> list[str]:
    if not skipped:
        return []
    lines = [f"- {show_name(one.path)}: {one.why}" for one in skipped[:MAX_LISTED_PATHS]]
    return ["", f"{format_count(len(skipped), 'file')} left alone:", *lines, *count_rest(len(skipped))]


def count_rest(count: int) -> list[str]:
    return [f"- … and {count - MAX_LISTED_PATHS:,} more"] if count > MAX_LISTED_PATHS else []


def render_diffs(checkpoints: FileCheckpoints, changes: Iterable[PathChange]) -> list[str]:
    """Render a diff of each changed path. Binary files are only named. Stops at more than anyone would read."""
    diffs: list[str] = []
    size = 0
    for change in changes:
        if diff := render_diff(checkpoints, change):
            diffs.append(diff)
            size += len(diff)
            if size > MAX_DIFF_CHARS:
                diffs.append("(more changes follow; they are too long to show)")
                break
    return diffs


def render_diff(checkpoints: FileCheckpoints, change: PathChange) -> str:
    from ollm.tools.files.file_change import make_diff

    if change.is_directory_only or any(entry and entry.kind == "i" for entry in (change.before, change.after)):
        return ""
    path = show_name(change.path)
    try:
        texts = [describe_entry(checkpoints, change.path, entry) for entry in (change.before, change.after)]
    except StorageError as error:
        return f"--- a/{path}\n+++ b/{path}\n({error})"
    if any(text is None for text in texts):
        return f"--- a/{path}\n+++ b/{path}\n(not text)"
    diff = make_diff(path, texts[0] or "", texts[1] or "").removesuffix("\n")
    before, after = change.before, change.after
    if before and after and before.mode != after.mode and before.kind == after.kind == "f":
        diff = f"--- a/{path}\n+++ b/{path}\n(mode {before.mode:o} → {after.mode:o})" + (f"\n{diff}" if diff else "")
    return diff or f"--- a/{path}\n+++ b/{path}\n({'removed' if after is None else 'created'}, empty)"


def describe_entry(checkpoints: FileCheckpoints, path: str, entry: Any) -> str | None:
    """Return the text of a path, or None if it is not text."""
    if entry is None or entry.kind == "d":
        return ""
    if entry.kind == "l":
        return f"→ {entry.value.decode('utf-8', 'replace')}\n"
    if entry.kind != "f":
        return None
    content = checkpoints.read_entry(path, entry)
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def to_plain_data(plan: RestorePlan | RestoreResult) -> dict[str, Any]:
    """Convert a plan or its result to data for programs."""
    files = {step.path: step.letter for step in plan.files}
    return {
        "files": [{"path": show_name(path), "change": change} for path, change in sorted(files.items())],
        "skipped": [{"path": show_name(one.path), "why": one.why} for one in plan.skipped],
    }
