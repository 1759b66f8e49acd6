"""Trust in a workspace, asked of an editor with the first message: it is about what counts only when it is trusted."""

from __future__ import annotations

from pathlib import Path

from ollm.acp.tool_calls import render_text
from ollm.domain.messages import JsonObject
from ollm.policy.trust import TrustBook, TrustState
from ollm.runtime.base import Status
from ollm.runtime.conversation import LocalConversation
from ollm.system.terminal_text import make_printable

MAX_SHOWN_FILES = 12
QUESTION_ID = "trust-workspace"
OPTIONS: list[JsonObject] = [
    {"optionId": "trust", "name": "Trust these files", "kind": "allow_always"},
    {"optionId": "later", "name": "Not now", "kind": "reject_once"},
    {"optionId": "never", "name": "No, and do not ask about them again", "kind": "reject_always"},
]


class WorkspaceTrust:
    """Asks once in a session, unless there is nothing to ask about or it was answered for these very files."""

    def __init__(self, book: TrustBook, workspace: Path) -> None:
        self._book = book
        self._workspace = workspace
        self._asked = False

    def take_question(self) -> JsonObject | None:
        """The question as a call that an editor asks about; None where there is none, or no more."""
        if self._asked:
            return None
        self._asked = True
        state = self._book.get_state(self._workspace)
        return build_trust_question(state) if is_open(state) else None

    def keep_answer(self, chosen: str | None) -> str:
        """Do what was chosen; what is said about it."""
        if chosen == "trust":
            self._book.trust(self._workspace)
            return "Trusted: the files count from now on."
        if chosen == "never":
            self._book.decline(self._workspace)
        return "Not trusted: the files do not count. Send /trust yes to change that."


async def restore_choices(conversation: LocalConversation, first: Status, last: Status) -> None:
    """What a person chose between two looks at a session, chosen again in the same session opened anew. Mode plan hides
    the approval level: that is then as it was opened."""
    names = ["model", *(["approval"] if last.mode != "plan" else []), "mode"]
    for name in names:
        now = await conversation.status()
        if getattr(first, name) != getattr(last, name) != getattr(now, name):
            await conversation.command(name, getattr(last, name))


def is_open(state: TrustState) -> bool:
    """Whether a workspace has files that count only when it is trusted, and nobody has decided about them."""
    return not (state.trusted or state.declined) and bool(state.files or state.known)


def describe_trust(state: TrustState) -> tuple[str, ...]:
    """What is said when a session is opened."""
    if not is_open(state):
        return ()
    names = ", ".join(make_printable(name) for name in state.files[:3]) + (", …" if len(state.files) > 3 else "")
    without = f"works without {names}" if names else "works without what it had"
    return (f"This workspace is not trusted: this thread {without}. Your first message asks whether to trust it.",)


def build_trust_question(state: TrustState) -> JsonObject:
    """What would be used, or what has changed since it was trusted."""
    if state.known:
        marks = {"new": state.added, "changed": state.changed, "gone": state.removed}
        files = [f"{name} ({mark})" for mark, names in marks.items() for name in names]
    else:
        files = list(state.files)
    lines = [f"- {make_printable(name)}" for name in files[:MAX_SHOWN_FILES]]
    lines += [f"- and {len(files) - MAX_SHOWN_FILES} more"] if len(files) > MAX_SHOWN_FILES else []
    head = "Changed since you trusted it" if state.known else "Instructions and settings for agents"
    text = f"{head}:\n\n{chr(10).join(lines)}\n\nOnly if you know who wrote them."
    return {
        "toolCallId": QUESTION_ID,
        "title": f"Trust {make_printable(state.workspace)}?",
        "kind": "other",
        "status": "pending",
        "content": [render_text(text)],
    }
