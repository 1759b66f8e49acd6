"""Commands about the context: its parts, snapshots, entries, the window and compacted messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.clock import format_age
from ollm.domain.errors import UsageError
from ollm.providers.window import explain_window
from ollm.runtime import changes
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import (
    WrongUsage,
    fence_text,
    list_in_reply,
    parse_number,
    render_table,
    slash_command,
    split_subcommand,
)
from ollm.runtime.prompt.breakdown import describe_hidden_tools, list_context_parts
from ollm.services.context_manager import DEFAULT_PRIORITY

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts
    from ollm.services.message_search.session_archive import SessionArchive

BAR_WIDTH_CHARS = 30
MAX_SHOWN_CHARS = 20_000
MIN_WINDOW_TOKENS = 512
MAX_FOUND_MESSAGES = 10


@slash_command(
    "context",
    usage="[show | snapshot | list | restore ID | add [--priority N] KEY TEXT | entries | remove KEY | clear | size N]",
    during_turn=("", "show", "list", "entries"),
)
async def context(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show the context; manage snapshots and entries.

    - `show`: each part of the next request, with its tokens
    - `snapshot`: keep the context as it is now, to go back to
    - `list`: the snapshots there are
    - `restore ID`: go back to one; the archive keeps what came after
    - `add [--priority N] KEY TEXT`: tell the model something on every request; higher priorities first (50)
    - `entries`: what was added, and by whom
    - `remove KEY`: no longer
    - `clear`: remove every entry you added
    - `size N`: another window, in tokens"""
    name, rest = split_subcommand(arguments)
    run = SUBCOMMANDS.get(name or "show")
    if run is None:
        raise WrongUsage
    return await run(conversation, rest)


async def show_context(conversation: ConversationParts, arguments: str) -> CommandReply:
    prompt = conversation.prompt
    budget, usage, parts = prompt.compute_budget(), prompt.measure_usage(), list_context_parts(prompt)
    widest = max(part.tokens for part in parts)
    rows = [
        (part.name, str(part.tokens), "█" * round(BAR_WIDTH_CHARS * part.tokens / widest))
        for part in parts
        if part.tokens
    ]
    why = f"; the {usage.broken_by} changed" if usage.broken_by else ""
    reused = "" if usage.reused_share is None else f" Prompt cache: {usage.reused_share:.0%} reused{why}."
    text = (
        f"{usage.used:,} of {budget.limit:,} tokens used (context window {budget.window:,});"
        f" compaction starts at {budget.trigger:,}.{reused} {describe_hidden_tools(prompt)}".rstrip()
    )
    data = {**msgspec.to_builtins(budget), "used": usage.used, "parts": msgspec.to_builtins(parts)}
    return CommandReply(text=f"{text}\n\n{render_table(('part', 'tokens', ''), rows)}", data=data)


async def take_snapshot(conversation: ConversationParts, arguments: str) -> CommandReply:
    if conversation.session.id is None:
        raise UsageError("No session yet.", action="Send a message first.")
    made = await conversation.snapshots.create_snapshot(conversation.prompt.capture_state(), "manual")
    if made is None:
        return CommandReply(text="No snapshot was taken.", ok=False)
    return CommandReply(text=f"Snapshot `{made.id}`: {made.summary}", data={"id": made.id})


async def list_snapshots(conversation: ConversationParts, arguments: str) -> CommandReply:
    found = await conversation.snapshots.list_snapshots(conversation.session.require_id())
    rows = [
        (entry.id[:8], format_age(entry.timestamp), str(entry.token_count), entry.trigger, entry.summary)
        for entry in found
    ]
    return list_in_reply(("snapshot", "taken", "tokens", "why", "what"), rows, "No snapshots yet.", found)


async def restore_snapshot(conversation: ConversationParts, arguments: str) -> CommandReply:
    if not arguments:
        raise WrongUsage("restore ID")
    found = await conversation.snapshots.list_snapshots(conversation.session.require_id())
    fits = [entry for entry in found if entry.id.startswith(arguments.strip())]
    if len(fits) != 1:
        raise UsageError(f"{len(fits)} snapshots start with {arguments!r}.", action="List them with /context list.")
    await changes.restore_snapshot(conversation, fits[0].id)
    taken = f"Restored snapshot {fits[0].id[:8]}, taken {format_age(fits[0].timestamp)}."
    return CommandReply(text=f"{taken} The context before that is the newest one in /context list.")


async def add_entry(conversation: ConversationParts, arguments: str) -> CommandReply:
    priority = DEFAULT_PRIORITY
    if arguments.startswith("--priority"):
        _, number, arguments = [*arguments.split(None, 2), "", ""][:3]
        if not number.lstrip("-").isdecimal():
            raise WrongUsage("add [--priority N] KEY TEXT")
        priority = float(number)
    key, text = split_subcommand(arguments)
    if not text:
        raise WrongUsage("add [--priority N] KEY TEXT")
    entries = conversation.prompt.entries
    entries.add_context(key, text, source="user", priority=priority)
    if not entries.has_context(key):
        return CommandReply(text=f"{key!r} is not a valid context entry.", ok=False)
    conversation.prompt.refresh_system_prompt()
    return CommandReply(text=f"Added context entry {key!r}; undo with /context remove {key}.")


async def list_entries(conversation: ConversationParts, arguments: str) -> CommandReply:
    found = conversation.prompt.entries.get_context()
    rows = [(entry.key, f"{entry.priority:g}", entry.source, entry.content[:80]) for entry in found]
    return list_in_reply(("key", "priority", "source", "content"), rows, "No context entries.", found)


async def remove_entry(conversation: ConversationParts, arguments: str) -> CommandReply:
    entries = conversation.prompt.entries
    key = arguments.strip()
    if not entries.has_context(key):
        raise UsageError(f"No context entry {key!r}.", action="List them with /context entries.")
    entries.remove_context(key)
    conversation.prompt.refresh_system_prompt()
    return CommandReply(text=f"Removed context entry {key!r}.")


async def clear_entries(conversation: ConversationParts, arguments: str) -> CommandReply:
    count = conversation.prompt.entries.clear_context("user")
    conversation.prompt.refresh_system_prompt()
    return CommandReply(text=f"Removed {count} context entr{'y' if count == 1 else 'ies'}.", data={"removed": count})


async def change_size(conversation: ConversationParts, arguments: str) -> CommandReply:
    size = parse_number(arguments.strip())
    if size is None or size < MIN_WINDOW_TOKENS:
        raise WrongUsage(f"size N ({MIN_WINDOW_TOKENS} tokens or more)")
    await changes.change_window(conversation, size)
    window = conversation.state.model.window
    return CommandReply(text=f"Context window set to {window:,} tokens. {explain_window(window)}".rstrip())


@slash_command("compact")
async def compact(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Compact old messages into a summary.

    Done by itself when the window fills; this frees room now. /history and /expand still have every word."""
    before = conversation.prompt.used_tokens
    conversation.compactor.use_model(conversation.state.model)
    smaller = await conversation.compactor.compact(
        conversation.prompt, conversation.stream.emit, conversation.state.model.summarise
    )
    if not smaller:
        return CommandReply(text="Nothing to compact.")
    return CommandReply(text=f"Compacted {before:,} → {conversation.prompt.used_tokens:,} tokens; full history kept.")


@slash_command("expand", usage="NUMBER|CALL|WORDS", during_turn=True)
async def expand(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show a message or call in full, or search.

    `12`: message 12; `c3`: what the call c3 brought; words: the newest messages that have all of them."""
    wanted = arguments.strip().removeprefix("#")
    if not wanted:
        raise WrongUsage
    loaded, archive = conversation.session.load(), conversation.archive.get()
    number = parse_number(wanted)
    message = next((found for found in loaded.messages if found.id == number), None)
    if message is not None:
        text = (await archive.read_message(message.id) or "").strip()
        return CommandReply(text=text[:MAX_SHOWN_CHARS] or "(no text)", data=msgspec.to_builtins(message))
    call = next((found for found in loaded.tool_calls if found.id == wanted), None)
    if call is not None:
        text = await archive.read_call_output(call.id) or "(no result)"
        shown = fence_text(text[:MAX_SHOWN_CHARS])
        return CommandReply(text=f"`{call.name}`\n\n{shown}", data=msgspec.to_builtins(call))
    return await find_messages(archive, wanted)


async def find_messages(archive: SessionArchive, wanted: str) -> CommandReply:
    """List the messages that answer these words."""
    found = () if wanted.isdigit() else (await archive.search([wanted], MAX_FOUND_MESSAGES))[0]
    if not found:
        raise UsageError(f"No message or call {wanted!r}.", action="See the numbers in /history.")
    rows = [(str(one.message_id), one.role, one.snippet) for one in found]
    return CommandReply(text=render_table(("number", "who", "what"), rows), data=msgspec.to_builtins(found))


SUBCOMMANDS: dict[str, Callable[[ConversationParts, str], Awaitable[CommandReply]]] = {
    "show": show_context,
    "snapshot": take_snapshot,
    "list": list_snapshots,
    "restore": restore_snapshot,
    "add": add_entry,
    "entries": list_entries,
    "remove": remove_entry,
    "clear": clear_entries,
    "size": change_size,
}
