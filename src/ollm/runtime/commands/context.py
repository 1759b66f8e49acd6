"""Commands about what the model sees: its parts, snapshots, entries, the window; and what was folded away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.errors import UsageError
from ollm.providers.window import explain_small_window
from ollm.runtime import changes
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import CommandTable, make_usage_error, render_table, split_words
from ollm.runtime.prompt.breakdown import list_context_parts
from ollm.runtime.resume.session_archive import find_passages, get_call_output, render_archived_message

if TYPE_CHECKING:
    from ollm.domain.session import Session
    from ollm.runtime.conversation import LocalConversation

USAGE = "[show | snapshot | list | restore ID | add KEY TEXT | entries | remove KEY | size N]"
CONTEXT_HELP = """\
- `show`: each part of the next request, with its tokens
- `snapshot`: keep the context as it is now, to go back to
- `list`: the snapshots there are
- `restore ID`: go back to one; the archive keeps what came after
- `add KEY TEXT`: tell the model something on every request
- `entries`: what it is told so, and by whom
- `remove KEY`: no longer
- `size N`: another window, in tokens"""
BAR_WIDTH_CHARS = 30
MAX_SHOWN_CHARS = 20_000
MAX_FOUND_MESSAGES = 10


def add_to(commands: CommandTable) -> None:
    commands.register(
        "context", "Show what the model is sent; snapshots, entries, window.", usage=USAGE, more=CONTEXT_HELP
    )(context)
    commands.register("compact", "Fold old messages into a summary now.")(compact)
    told = "Show a message or a call in full, or find one by its words."
    commands.register("expand", told, usage="NUMBER|CALL|WORDS", during_turn=True)(expand)


async def context(conversation: LocalConversation, arguments: str) -> CommandReply:
    name, rest = split_subcommand(arguments)
    run = SUBCOMMANDS.get(name or "show")
    if run is None:
        raise make_usage_error("context", USAGE)
    return await run(conversation, rest)


async def show_context(conversation: LocalConversation, arguments: str) -> CommandReply:
    prompt = conversation.parts.prompt
    budget, usage, parts = prompt.compute_budget(), prompt.measure_usage(), list_context_parts(prompt)
    widest = max(part.tokens for part in parts) or 1
    rows = [
        (part.name, str(part.tokens), "█" * round(BAR_WIDTH_CHARS * part.tokens / widest))
        for part in parts
        if part.tokens
    ]
    why = f"; a {usage.broken_by} broke the rest" if usage.broken_by else ""
    reused = "" if usage.reused_share is None else f" {usage.reused_share:.0%} of the last prompt stood unchanged{why}."
    text = (
        f"{usage.used} of {budget.limit} tokens used (window {budget.window});"
        f" compression starts when messages take {budget.trigger}.{reused}"
    )
    data = {**msgspec.to_builtins(budget), "used": usage.used, "parts": msgspec.to_builtins(parts)}
    return CommandReply(text=f"{text}\n\n{render_table(('part', 'tokens', ''), rows)}", data=data)


async def take_snapshot(conversation: LocalConversation, arguments: str) -> CommandReply:
    parts = conversation.parts
    if parts.session.id is None:
        raise UsageError("There is no session yet.", action="Say something first.")
    made = await parts.late.snapshots.create_snapshot(parts.prompt.capture_state(), "manual")
    if made is None:
        return CommandReply(text="No snapshot was taken.", ok=False)
    return CommandReply(text=f"Snapshot `{made.id}`: {made.summary}", data={"id": made.id})


async def list_snapshots(conversation: LocalConversation, arguments: str) -> CommandReply:
    parts = conversation.parts
    found = await parts.late.snapshots.list_snapshots(parts.session.recorder.session_id)
    rows = [(entry.id, entry.timestamp, str(entry.token_count), entry.trigger, entry.summary) for entry in found]
    text = render_table(("snapshot", "taken", "tokens", "why", "what"), rows) if rows else "There is no snapshot yet."
    return CommandReply(text=text, data=msgspec.to_builtins(found))


async def restore_snapshot(conversation: LocalConversation, arguments: str) -> CommandReply:
    if not arguments:
        raise make_usage_error("context", "restore ID")
    parts = conversation.parts
    found = await parts.late.snapshots.list_snapshots(parts.session.recorder.session_id)
    fits = [entry for entry in found if entry.id.startswith(arguments.strip())]
    if len(fits) != 1:
        raise UsageError(f"{len(fits)} snapshots begin with {arguments!r}.", action="/context list shows them.")
    await changes.restore_snapshot(parts, fits[0].id)
    return CommandReply(text=f"The context is as it was at {fits[0].timestamp}. /context list has the way back.")


async def add_entry(conversation: LocalConversation, arguments: str) -> CommandReply:
    key, text = split_subcommand(arguments)
    if not text:
        raise make_usage_error("context", "add KEY TEXT")
    entries = conversation.parts.prompt.entries
    entries.add_context(key, text, source="user")
    if not entries.has_context(key):
        return CommandReply(text=f"{key!r} cannot be a context entry.", ok=False)
    conversation.parts.prompt.refresh_system_prompt()
    return CommandReply(text=f"The model is told {key!r} from now on; /context remove {key} takes it back.")


async def list_entries(conversation: LocalConversation, arguments: str) -> CommandReply:
    found = conversation.parts.prompt.entries.get_context()
    rows = [(entry.key, f"{entry.priority:g}", entry.source, entry.content[:80]) for entry in found]
    text = render_table(("key", "priority", "source", "content"), rows) if rows else "There are no context entries."
    return CommandReply(text=text, data=msgspec.to_builtins(found))


async def remove_entry(conversation: LocalConversation, arguments: str) -> CommandReply:
    entries = conversation.parts.prompt.entries
    key = arguments.strip()
    if not entries.has_context(key):
        raise UsageError(f"There is no context entry {key!r}.", action="/context entries lists them.")
    entries.remove_context(key)
    conversation.parts.prompt.refresh_system_prompt()
    return CommandReply(text=f"{key!r} is no longer told to the model.")


async def change_size(conversation: LocalConversation, arguments: str) -> CommandReply:
    if not arguments.strip().isdigit() or int(arguments) < 512:
        raise make_usage_error("context", "size N (512 tokens or more)")
    await changes.change_window(conversation.parts, int(arguments))
    window = conversation.parts.model.window
    return CommandReply(text=f"The window is {window} tokens from now on. {explain_small_window(window)}".rstrip())


async def compact(conversation: LocalConversation, arguments: str) -> CommandReply:
    parts = conversation.parts
    before = parts.prompt.used_tokens
    smaller = await parts.prompt.compact(parts.stream.emit, parts.model.summarise)
    if not smaller:
        return CommandReply(text="There was nothing to fold.")
    return CommandReply(text=f"Folded: {before} tokens became {parts.prompt.used_tokens}. The archive has everything.")


async def expand(conversation: LocalConversation, arguments: str) -> CommandReply:
    """What the model can `recall`, for the person: by number, by a call's id, or by words."""
    wanted = arguments.strip().removeprefix("#")
    if not wanted:
        raise make_usage_error("expand", "NUMBER|CALL|WORDS")
    loaded = conversation.parts.session.load()
    if wanted.isdigit():
        message = next((found for found in loaded.messages if found.id == int(wanted)), None)
        if message is not None:
            text = render_archived_message(message, loaded.tool_calls).strip()
            return CommandReply(text=text[:MAX_SHOWN_CHARS] or "(no text)", data=msgspec.to_builtins(message))
    call = next((found for found in loaded.tool_calls if found.id == wanted), None)
    if call is not None:
        text = get_call_output(call) or "(no result)"
        return CommandReply(text=f"`{call.name}`\n\n```\n{text[:MAX_SHOWN_CHARS]}\n```", data=msgspec.to_builtins(call))
    return find_messages(loaded, wanted)


def find_messages(session: Session, wanted: str) -> CommandReply:
    """The newest messages with all of these words."""
    found = [] if wanted.isdigit() else find_passages(session, wanted, MAX_FOUND_MESSAGES)
    if not found:
        raise UsageError(f"There is no message or call {wanted!r}.", action="/history shows the numbers.")
    rows = [(str(one.message_id), one.role, one.snippet) for one in found]
    return CommandReply(text=render_table(("number", "who", "what"), rows), data=msgspec.to_builtins(found))


def split_subcommand(arguments: str) -> tuple[str, str]:
    found = split_words(arguments, 2)
    return (found[0] if found else "", found[1] if len(found) > 1 else "")


SUBCOMMANDS: dict[str, Callable[[LocalConversation, str], Awaitable[CommandReply]]] = {
    "show": show_context,
    "snapshot": take_snapshot,
    "list": list_snapshots,
    "restore": restore_snapshot,
    "add": add_entry,
    "entries": list_entries,
    "remove": remove_entry,
    "size": change_size,
}
