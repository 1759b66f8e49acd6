"""Commands about the session: its history, other sessions, going on, leaving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.clock import format_age
from ollm.domain.errors import UsageError
from ollm.domain.text import shorten_ids
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import (
    CommandTable,
    SessionNeeds,
    fence_text,
    make_usage_error,
    parse_number,
    render_table,
    split_words,
)

DEFAULT_PAGE_MESSAGES = 200
MAX_PAGE_MESSAGES = 10**9
INIT_PROMPT = (
    "Write AGENTS.md for this project. Look at its files, build and test commands and conventions first; then write"
    " AGENTS.md in its root: what a coding agent must know to work here, in at most 40 lines. If there is one, improve"
    " it. Use only what you saw in the files."
)
HISTORY_USAGE = "[N | all | export FILE]"


HISTORY_HELP = "Every word, also what the model no longer sees. `N`: the last N messages; `all`: as many as there are."
EXPORT_HELP = "The ending decides the form. A file that exists is not replaced; paths start in the workspace."
SESSIONS_HELP = "Those of this workspace. As many characters of an id as tell it from the others are enough."
NEW_HELP = "The session so far is saved; `/resume` opens it again. Files and the model stay as they are."
COPY_HELP = "The text of the last answer, through the terminal, also over SSH where it allows that."
INIT_HELP = "The model looks at the project and writes the file, asked about like any edit. Words behind it go along."
RETRY_HELP = (
    "For a server that failed or an answer you do not like. A message without an answer reaches the model once."
)
CONTINUE_HELP = "After a loop the model is told what it repeated. Words behind it are sent along."


def register_commands(commands: CommandTable) -> None:
    shown = "Show or export the conversation."
    commands.register("history", shown, usage=HISTORY_USAGE, more=HISTORY_HELP, during_turn=True)(history)
    exported = "Export the session to a file (.json, .md or .html)."
    commands.register("export", exported, usage="FILE", more=EXPORT_HELP, during_turn=True)(export)
    commands.register("sessions", "List sessions, or open one.", usage="[ID]", more=SESSIONS_HELP)(sessions)
    commands.register("resume", "Resume another session.", usage="[ID]", more=SESSIONS_HELP)(sessions)
    commands.register("new", "Start a new session.", more=NEW_HELP)(new)
    commands.register("clear", "Start a new session with an empty context.", more=NEW_HELP)(new)
    commands.register("copy", "Copy the last answer to the clipboard.", more=COPY_HELP, during_turn=True)(copy)
    commands.register("init", "Write AGENTS.md: what an agent must know about this project.", more=INIT_HELP)(init)
    carried_on = "Continue after a stopped loop or a cut answer."
    commands.register("continue", carried_on, usage="[TEXT]", more=CONTINUE_HELP)(continue_session)
    commands.register("retry", "Send your last message again.", more=RETRY_HELP)(retry)
    commands.register("exit", "Quit; the session is saved.", during_turn=True)(exit_chat)
    commands.register("quit", "Quit; the session is saved.", during_turn=True)(exit_chat)


async def history(conversation: SessionNeeds, arguments: str) -> CommandReply:
    """Everything there is, unless it is very long; `all` shows that too."""
    found = split_words(arguments, 2)
    if found and found[0] == "export":
        return await export(conversation, found[1] if len(found) > 1 else "")
    if found == ["all"]:
        limit: int | None = MAX_PAGE_MESSAGES
    else:
        limit = parse_number(arguments.strip()) if found else DEFAULT_PAGE_MESSAGES
    if not limit:
        raise make_usage_error("history", HISTORY_USAGE)
    page = conversation.session.load_page(None, limit)
    lines = [
        f"**#{message['id']} {message['role']}** {format_age(message['timestamp'])}\n\n{text}"
        for message in page
        if (text := format_message(message)) or message["role"] != "tool"
    ]
    if page and page[0]["id"] > 1:
        lines.insert(0, f"{page[0]['id'] - 1} earlier messages: `/history all`.")
    return CommandReply(text="\n\n".join(lines) or "No messages yet.", data=page)


def format_message(message: dict[str, Any]) -> str:
    """A message with its calls; results are beside the call that brought them."""
    if message["role"] == "user":
        return "\n\n".join(fence_text(part["text"]) for part in message["parts"] if part["type"] == "text")
    lines = [format_part(part) for part in message["parts"] if part["type"] in ("text", "thinking")]
    if message["role"] == "assistant":
        lines += [format_call(call) for call in message["toolCalls"]]
    return "\n\n".join(lines)


def format_call(call: dict[str, Any]) -> str:
    result = call.get("result") or {}
    brought = result.get("fullOutput") or result.get("llmContent") or ""
    when, arguments = format_age(call["timestamp"]), msgspec.json.encode(call["args"]).decode()
    head = f"`{call['name']}` {arguments} · {call['status']} · {when}"
    return f"{head}\n\n{fence_text(brought)}" if brought else head


def format_part(part: dict[str, str]) -> str:
    """Thinking is told apart from what was said."""
    return part["text"] if part["type"] == "text" else "> " + part["text"].replace("\n", "\n> ")


async def export(conversation: SessionNeeds, arguments: str) -> CommandReply:
    if not arguments.strip():
        raise make_usage_error("export", "FILE")
    target = conversation.workspace / Path(arguments.strip()).expanduser()
    conversation.export(conversation.session.recorder.session_id, target)
    return CommandReply(text=f"Written to {target}.", data={"file": str(target)})


async def sessions(conversation: SessionNeeds, arguments: str) -> CommandReply:
    known = conversation.workspace_sessions.get().list_sessions()
    wanted = arguments.strip()
    if wanted:
        fits = [record for record in known if record.session_id.startswith(wanted)]
        if len(fits) != 1:
            raise UsageError(f"{len(fits)} sessions start with {wanted!r}.", action="List them with /sessions.")
        return CommandReply(follow_up="open-session", argument=fits[0].session_id)
    short = shorten_ids(record.session_id for record in known)
    rows = [(short[record.session_id], record.title, record.model, record.status) for record in known]
    text = render_table(("session", "title", "model", ""), rows) if rows else "No sessions in this workspace yet."
    return CommandReply(text=text, data=[record.session_id for record in known])


async def new(conversation: SessionNeeds, arguments: str) -> CommandReply:
    """The model that was chosen here is chosen there too."""
    return CommandReply(text="New session.", follow_up="new-session", argument=conversation.state.chosen_model)


async def retry(conversation: SessionNeeds, arguments: str) -> CommandReply:
    for message in reversed(conversation.session.load_page(None, DEFAULT_PAGE_MESSAGES)):
        if message["role"] == "user":
            return CommandReply(follow_up="send", argument=_read_text(message))
    raise UsageError("There is no message to send again.", action="Type one.")


def _read_text(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


async def continue_session(conversation: SessionNeeds, arguments: str) -> CommandReply:
    last = conversation.session.load_page(None, 1)
    if last and last[0]["role"] == "user" and not arguments.strip():
        return CommandReply(follow_up="send", argument=_read_text(last[0]))
    pattern = conversation.state.last_loop
    text = f"Go on, but not like this again: {pattern}" if pattern else "Go on."
    return CommandReply(follow_up="send", argument=f"{text} {arguments}".strip())


async def copy(conversation: SessionNeeds, arguments: str) -> CommandReply:
    """The text of the model's last message; the terminal puts it into the clipboard."""
    answers = (message for message in reversed(conversation.session.load_page(None, DEFAULT_PAGE_MESSAGES)))
    for message in answers:
        text = _read_text(message)
        if message["role"] == "assistant" and text.strip():
            return CommandReply(text=text)
    raise UsageError("There is no answer to copy yet.", action="Send a message first.")


async def init(conversation: SessionNeeds, arguments: str) -> CommandReply:
    return CommandReply(follow_up="send", argument=f"{INIT_PROMPT} {arguments}".strip())


async def exit_chat(conversation: SessionNeeds, arguments: str) -> CommandReply:
    return CommandReply(follow_up="exit")
