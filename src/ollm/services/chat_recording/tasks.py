"""The sessions of tasks: which session began which, in the archive or in the trash."""

from __future__ import annotations

from collections.abc import Iterable

from ollm.domain.errors import OllmError
from ollm.domain.session import SessionSummary
from ollm.store.session_files import SessionFiles

TASK_ORIGIN = "task"


def hide_tasks(summaries: Iterable[SessionSummary]) -> list[SessionSummary]:
    return [summary for summary in summaries if summary.origin != TASK_ORIGIN]


def find_tasks(files: SessionFiles, summaries: Iterable[SessionSummary], parents: Iterable[str]) -> list[str]:
    """The ids of the tasks among these sessions that the parents began."""
    wanted = set(parents)
    tasks = (summary.session_id for summary in summaries if summary.origin == TASK_ORIGIN)
    return [session_id for session_id in tasks if _find_parent(files, session_id) in wanted]


def _find_parent(files: SessionFiles, session_id: str) -> str | None:
    try:
        parent = files.describe_session(session_id).metadata.parent
    except OllmError:
        return None
    return parent.session_id if parent else None
