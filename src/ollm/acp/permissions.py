"""A confirmation as an editor asks it: the call it is about, the ways to answer, and what each of them means."""

from __future__ import annotations

from ollm.acp.tool_calls import ToolCallViews, is_path, render_text, shorten_title
from ollm.domain.messages import JsonObject
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, GrantScope
from ollm.system.terminal_text import clean_lines, make_printable

SCOPES: dict[str, GrantScope] = {
    "once": "once",
    "session": "session",
    "always": "always",
    "prefix": "always",
    "everywhere": "everywhere",
}
REJECT = "reject"


def build_options(details: ConfirmationDetails) -> list[JsonObject]:
    """The answers there are; what may not be granted for longer is only allowed once."""
    options = [make_option("once", "Allow once", "allow_once")]
    if details.grant and not details.locked:
        grant = make_printable(details.grant)
        options.append(make_option("session", f"Allow for this session ({grant})", "allow_always"))
        options.append(make_option("always", f"Always allow in this workspace ({grant})", "allow_always"))
        if details.prefix:
            prefix = make_printable(details.prefix)
            options.append(make_option("prefix", f"Always allow in this workspace: {prefix} …", "allow_always"))
        options.append(make_option("everywhere", f"Always allow everywhere ({grant})", "allow_always"))
    return [*options, make_option(REJECT, "Reject", "reject_once")]


def make_option(option_id: str, name: str, kind: str) -> JsonObject:
    return {"optionId": option_id, "name": name, "kind": kind}


def read_answer(chosen: str | None, details: ConfirmationDetails) -> ConfirmationAnswer:
    """What an option means; one that was not offered, or none at all, is a no."""
    offered = {option["optionId"] for option in build_options(details)} - {REJECT}
    if chosen is None or chosen not in offered:
        return ConfirmationAnswer(approved=False)
    return ConfirmationAnswer(approved=True, scope=SCOPES[chosen], prefix=chosen == "prefix")


def build_question(details: ConfirmationDetails, views: ToolCallViews, kind: str) -> JsonObject:
    """The call that is asked about, with what it would change and why it is asked."""
    reason = f"{details.risk.value} risk · {details.reason}"
    command = [render_text(f"```sh\n{clean_lines(details.command)}\n```")] if details.command else []
    return {
        "toolCallId": details.call_id,
        "title": shorten_title(details.command or details.description),
        "kind": kind,
        "status": "pending",
        "content": [*map(views.render_change, details.changes), *command, render_text(reason)],
        "locations": [views.make_location(target) for target in details.locations if is_path(target)],
    }
