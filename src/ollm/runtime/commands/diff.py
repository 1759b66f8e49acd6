"""`/diff`: the changes of this session on the whole, or of one turn, with gaps marked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.errors import OllmError, UsageError
from ollm.domain.struct import Data
from ollm.runtime import rewind
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import WrongUsage, fence_text, parse_number, slash_command

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts
    from ollm.services.file_checkpoints.records import CheckpointRecord
    from ollm.services.file_checkpoints.service import CheckpointView, FileCheckpoints

MAX_MESSAGES = 10**9
ONLY_EDITS = "What commands changed is not known"


class DiffSection(Data, frozen=True):
    """A span in which files changed or may have changed. `note` describes any gaps."""

    message_id: int
    kind: str
    title: str
    diffs: list[str]
    note: str = ""


@slash_command("diff", usage="[NUMBER]", during_turn=True)
async def show_changes(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show what this session changed, commands included.

    On the whole, since the session began; with a number the turn of that message. It says what it cannot know."""
    word = arguments.strip().removeprefix("#")
    number = parse_number(word)
    if word and number is None:
        raise WrongUsage
    if number is not None:
        require_message(conversation, number)
    found = await asyncio.to_thread(collect_sections, conversation, number)
    if not found:
        who = "This session" if number is None else f"Message {number}"
        return CommandReply(text=f"{who} changed no files.", data={"diffs": [], "turns": []})
    diffs = [diff for section in found for diff in section.diffs]
    data = {"diffs": diffs, "turns": msgspec.to_builtins(found)}
    return CommandReply(text="\n\n".join(map(render_section, found)), data=data)


def render_section(section: DiffSection) -> str:
    shown = fence_text("\n".join(section.diffs), "diff") if section.diffs else ""
    return "\n\n".join(part for part in (f"**{section.title}**", section.note, shown) if part)


def require_message(conversation: ConversationParts, number: int) -> None:
    """Raises UsageError for a message that does not exist."""
    page = conversation.session.load_page(None, 1)
    newest = int(page[-1]["id"]) if page else 0
    if not 1 <= number <= newest:
        known = f"This session has messages 1 to {newest}" if newest else "This session has no messages yet"
        raise UsageError(f"There is no message {number}. {known}.", action="See the numbers in /history.")


def collect_sections(conversation: ConversationParts, number: int | None) -> list[DiffSection]:
    """Every stretch in which this session changed files, or may have."""
    session_id = conversation.session.id
    if session_id is None:
        return []
    checkpoints = conversation.checkpoints.get()
    records = checkpoints.list_records(session_id)
    wanted = [
        record
        for record in records
        if number in (None, record.message_id) or (record.kind == "pruned" and record.message_id >= (number or 0))
    ]
    if not wanted:
        return describe_unsaved(conversation, checkpoints, number, saved=bool(records))
    view = None
    if any(record.has_trees and not record.end for record in wanted):
        view = checkpoints.view_files()
        numbers = {record.number for record in wanted}
        wanted = [record for record in view.list_records(session_id) if record.number in numbers]
    saved = [record for record in wanted if record.kind not in ("pruned", "missed")]
    groups = [[record] for record in wanted if record not in saved] + ([saved] if saved else [])
    sections = [make_section(conversation, checkpoints, view, group, number) for group in groups]
    return [section for section in sections if section.diffs or section.note]


def make_section(
    conversation: ConversationParts,
    checkpoints: FileCheckpoints,
    view: CheckpointView | None,
    records: Sequence[CheckpointRecord],
    number: int | None,
) -> DiffSection:
    """Make a section of one unsaved record, or of all saved ones: what they changed on the whole."""
    from ollm.services.file_checkpoints.tree import join_changes

    record = records[-1]
    last = record.message_id
    title, note = f"Message #{number or last}", ""
    if record.kind == "pruned":
        title = f"Up to message #{last}"
        note = f"{ONLY_EDITS} any more: the saved files are gone (checkpoints.keepDays, checkpoints.maxTotal)."
        diffs = collect_edits(conversation, 0, last)
    elif record.kind == "missed":
        note = f"{ONLY_EDITS}: the files were not saved."
        diffs = collect_edits(conversation, last, last)
    else:
        title = title if number else "This session"
        try:
            listed = [view.list_changes(one) if view else checkpoints.list_changes(one) for one in records]
            diffs = rewind.render_diffs(checkpoints, join_changes(chain.from_iterable(listed)))
        except OllmError as error:
            note, diffs = f"What changed is not known any more: {error}", []
        if any(one.cut_off for one in records) and record.kind == "turn":
            note = note or "The turn was cut off, so it is not known what its last step changed."
    return DiffSection(message_id=last, kind=record.kind, title=title, diffs=diffs, note=note)


def describe_unsaved(
    conversation: ConversationParts, checkpoints: FileCheckpoints, number: int | None, *, saved: bool
) -> list[DiffSection]:
    """Describe the edits in the archive, when no saved state exists. Returns nothing for a file without edits."""
    off = checkpoints.reason_off
    diffs = collect_edits(conversation, number or 0, number or MAX_MESSAGES)
    if not off and (saved or not diffs):
        return []
    title = "This session" if number is None else f"Message #{number}"
    note = f"{ONLY_EDITS}{f': {off}' if off else '.'}"
    return [DiffSection(message_id=number or 0, kind="edits", title=title, diffs=diffs, note=note)]


def collect_edits(conversation: ConversationParts, first: int, last: int) -> list[str]:
    """The diffs of our own edits in the turns of the messages `first` to `last`."""
    page: list[dict[str, Any]] = conversation.session.load_page(None, MAX_MESSAGES)
    turn, diffs = 0, []
    for message in page:
        if message["role"] == "user":
            turn = int(message["id"])
        if first <= turn <= last:
            results = ((call.get("result") or {}).get("diff") for call in message.get("toolCalls", ()))
            diffs += [diff.removesuffix("\n") for diff in results if diff]
    return diffs
