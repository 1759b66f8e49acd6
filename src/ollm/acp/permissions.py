"""Questions to the person in the editor: tool permissions and workspace trust."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ollm.acp.updates import ToolCallViews, is_path, render_text, shorten_title
from ollm.domain.messages import JsonObject
from ollm.domain.text import format_names
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, GrantScope
from ollm.policy.trust import TrustBook, TrustState
from ollm.runtime.base import Status
from ollm.runtime.conversation import LocalConversation
from ollm.system.terminal_text import clean_lines, make_printable

SCOPES: dict[str, GrantScope] = {scope: scope for scope in get_args(GrantScope)} | {"prefix": "always"}
REJECT = "reject"


def build_options(details: ConfirmationDetails) -> list[JsonObject]:
    """List the options for a question. A call without a possible grant can only be allowed once."""
    options = [make_option("once", "Allow once", "allow_once")]
    if details.grant and not details.locked:
        grant = make_printable(details.grant)
        options += [
            make_option("session", f"Allow for this session ({grant})", "allow_always"),
            make_option("always", f"Always allow in this workspace ({grant})", "allow_always"),
        ]
        if details.prefix:
            prefix = make_printable(details.prefix)
            options.append(make_option("prefix", f"Always allow in this workspace: {prefix} …", "allow_always"))
        options.append(make_option("everywhere", f"Always allow everywhere ({grant})", "allow_always"))
    return [*options, make_option(REJECT, "Reject", "reject_once")]


def make_option(option_id: str, name: str, kind: str) -> JsonObject:
    return {"optionId": option_id, "name": name, "kind": kind}


def read_answer(chosen: str | None, details: ConfirmationDetails) -> ConfirmationAnswer:
    """Map an option to an answer. A missing or unknown option means no."""
    offered = {option["optionId"] for option in build_options(details)} - {REJECT}
    if chosen is None or chosen not in offered:
        return ConfirmationAnswer(approved=False)
    return ConfirmationAnswer(approved=True, scope=SCOPES[chosen], prefix=chosen == "prefix")


def build_question(details: ConfirmationDetails, views: ToolCallViews, kind: str) -> JsonObject:
    """Build the question about a call, with its changes and the reason."""
    reason = [render_text(details.unusual)] if details.unusual else []
    command = [render_text(f"```sh\n{clean_lines(details.command)}\n```")] if details.command else []
    return {
        "toolCallId": details.call_id,
        "title": shorten_title(details.command or details.description),
        "kind": kind,
        "status": "pending",
        "content": [*map(views.render_change, details.changes), *command, *reason],
        "locations": [views.make_location(target) for target in details.locations if is_path(target)],
    }


QUESTION_ID = "trust-workspace"
OPTIONS: list[JsonObject] = [
    {"optionId": "trust", "name": "Trust these files", "kind": "allow_always"},
    {"optionId": "later", "name": "Not now", "kind": "reject_once"},
    {"optionId": "never", "name": "No, and do not ask about them again", "kind": "reject_always"},
]


class WorkspaceTrust:
    """Trust question of a session, asked at most once and only if these exact files have no answer yet."""

    def __init__(self, book: TrustBook, workspace: Path) -> None:
        self._book = book
        self._workspace = workspace
        self._was_asked = False

    def take_question(self) -> JsonObject | None:
        """Return the trust question as a tool call, or None if it was already asked or is not needed."""
        if self._was_asked:
            return None
        self._was_asked = True
        state = self._book.get_state(self._workspace)
        return build_trust_question(state) if state.unanswered else None

    def keep_answer(self, chosen: str | None) -> str:
        """Apply the choice and return a message about it."""
        if chosen == "trust":
            self._book.trust(self._workspace)
            return "Trusted: the files count from now on."
        if chosen == "never":
            self._book.decline(self._workspace)
        return "Not trusted: the files do not count. Send /trust yes to change that."


async def restore_choices(conversation: LocalConversation, first: Status, last: Status) -> None:
    """Restore the person's choices in a reopened session, except an approval level that plan mode hides."""
    names = ["model", *(["approval"] if last.mode != "plan" else []), "mode"]
    for name in names:
        now = await conversation.status()
        if getattr(first, name) != getattr(last, name) != getattr(now, name):
            await conversation.command(name, getattr(last, name))


def describe_trust(state: TrustState) -> tuple[str, ...]:
    """Describe the trust of a workspace when a session is opened."""
    if not state.unanswered:
        return ()
    names = format_names([make_printable(name) for name in state.files], 3) or "what it had"
    text = f"This workspace is not trusted: this thread works without {names}."
    return (f"{text} Your first message asks whether to trust it.",)


def build_trust_question(state: TrustState) -> JsonObject:
    lines = [f"- {make_printable(line)}" for line in state.describe_files()]
    head = "Changed since you trusted it" if state.known else "Instructions and settings for agents"
    text = f"{head}:\n\n{chr(10).join(lines)}\n\nOnly if you know who wrote them."
    return {
        "toolCallId": QUESTION_ID,
        "title": f"Trust {make_printable(state.workspace)}?",
        "kind": "other",
        "status": "pending",
        "content": [render_text(text)],
    }
