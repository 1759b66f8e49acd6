"""Commands that go back: `/rewind` for conversation and files, and `/redo`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from ollm.domain.errors import OllmError, UsageError
from ollm.domain.messages import TextPart
from ollm.domain.text import format_names
from ollm.runtime import changes, rewind
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import WrongUsage, parse_number, slash_command
from ollm.runtime.commands.work import swap_edit
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.domain.context import ActiveContext
    from ollm.runtime.parts import ConversationParts

log = logging.getLogger(__name__)
MAX_NAMED_PATHS = 20
MAX_LISTED_MESSAGES = 1_000
MAX_SHOWN_CHARS = 300


def parse_rewind(arguments: str) -> rewind.RewindRequest:
    words = arguments.split()
    number = parse_number(words[0].removeprefix("#")) if words else None
    rest = set(words[1:])
    scopes: list[rewind.RewindScope] = [scope for scope in get_args(rewind.RewindScope) if scope in rest]
    known = {*get_args(rewind.RewindScope), "diff", "force", "yes"}
    if number is None or len(scopes) > 1 or rest - known:
        raise WrongUsage
    scope = scopes[0] if scopes else None
    flags = {name: name in rest for name in ("diff", "force", "yes")}
    return rewind.RewindRequest(number=number, scope=scope, **flags)


@slash_command("rewind", usage="[NUMBER] [talk|files|both] [diff] [force] [yes]")
async def run_rewind(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Go back to before a message: conversation, files or both.

    Without a number: your messages, to choose from. `talk` takes messages out of the context, `files` puts files back
    as they were before the message, `both` does both and is the default where files changed. Without `yes` it only says
    what it would do, with `diff` line by line. Files that others changed since are left alone unless `force` is added.
    `/redo` takes it back."""
    if not arguments.strip():
        return list_messages(conversation)
    request = parse_rewind(arguments)
    flow = create_flow(conversation)
    done = await flow.rewind(request)
    data: dict[str, Any] = {"scope": done.what, "files": done.files, "skipped": done.skipped}
    if not request.yes:
        return CommandReply(text=f"{done.text}\n\n{explain_confirmation(request, done)}", data=data)
    if done.what == "files":
        await tell_model(conversation, f"The user put files back as they were before message {request.number}", data)
    parts = changes.find_user_message(flow.session, request.number).parts
    data["text"] = join_typed_text(part.text for part in parts if isinstance(part, TextPart))
    return CommandReply(text=done.text, data=data)


def explain_confirmation(request: rewind.RewindRequest, done: rewind.RewindOutcome) -> str:
    """Return the commands that do what was previewed, or a part of it."""
    number, force = request.number, " force" if request.force else ""
    named = f" {done.what}" if request.scope or done.what == "talk" else ""
    text = f"To confirm: /rewind {number}{named}{force} yes."
    if not (done.files or done.skipped):
        return text
    text += "" if request.diff else f" The changes: /rewind {number}{named}{force} diff."
    only = f" Only one of both: /rewind {number} talk yes, /rewind {number} files{force} yes."
    return text + (only if done.what == "both" else "")


def create_flow(conversation: ConversationParts, before: ActiveContext | None = None) -> rewind.RewindFlow:
    """Create the rewind of this conversation. `before` is the context that a redo brings back."""

    async def record(step: rewind.Step) -> None:
        if step["step"].startswith("rewind"):
            conversation.edits.get().forget_undone()
        if step["step"] == "rewind":
            await changes.rewind_context(conversation, step)
            return
        if before is not None:
            conversation.prompt.restore(before, cause="rewind")
        await changes.record_step(conversation, step)

    files, editor = conversation.files.get(), None
    if files.editor is not None:
        from ollm.runtime.editor_rewind import EditorRewind

        editor = EditorRewind(files, conversation.checkpoints.get())
    return rewind.RewindFlow(conversation.session.load(), conversation.checkpoints, record, editor)


def list_messages(conversation: ConversationParts) -> CommandReply:
    page = conversation.session.load_page(None, MAX_LISTED_MESSAGES)
    found = {int(message["id"]): shorten_message(message) for message in page if message["role"] == "user"}
    rows = [f"- #{number} {text}" for number, text in found.items()]
    text = (
        "\n".join(["Rewind to before which message? `/rewind NUMBER`", "", *rows]) if rows else "Nothing to rewind yet."
    )
    return CommandReply(text=text, data=[{"number": number, "text": text} for number, text in found.items()])


def shorten_message(message: dict[str, Any]) -> str:
    text = join_typed_text(part["text"] for part in message["parts"] if part["type"] == "text")
    return make_printable(" ".join(text.split()))[:MAX_SHOWN_CHARS]


def join_typed_text(texts: Iterable[str]) -> str:
    """Join the parts of a message without its attachments."""
    return " ".join(text for text in texts if not text.startswith("\n\n["))


@slash_command("redo", usage="[force]")
async def run_redo(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Take back the last /undo or /rewind.

    Files that were changed since are left alone and named; `force` takes them too."""
    words = arguments.split()
    if words not in ([], ["force"]):
        raise WrongUsage
    if reply := await swap_edit(conversation, "redo"):
        return reply
    if conversation.session.id is None:
        raise UsageError("Nothing to redo.")
    step = changes.find_redoable_step(conversation.session.load(), force=bool(words))
    context = await find_context_before(conversation, step) if step["step"] == "rewind" else None
    done = await create_flow(conversation, context).redo(force=bool(words))
    data = {"files": done.files, "skipped": done.skipped}
    if context is None:
        await tell_model(conversation, "The user put files back as they were before that", data)
    more = "\n\n`/redo force` puts back what was left alone too." if done.skipped and not words else ""
    return CommandReply(text=f"{done.text}{more}", data=data)


async def find_context_before(conversation: ConversationParts, step: dict[str, Any]) -> ActiveContext:
    """Return the context before a rewind, found before any file changes: as its snapshot has it, else as the archive
    does."""
    if step.get("snapshotId"):
        try:
            return await conversation.snapshots.restore_snapshot(str(step["snapshotId"]))
        except OllmError as error:
            log.info("The snapshot before a rewind is gone, the archive is used: %s", error)
    from ollm.runtime.resume.resume import rebuild_before_rewind

    return await asyncio.to_thread(lambda: rebuild_before_rewind(conversation.session.load()))


async def tell_model(conversation: ConversationParts, what: str, data: dict[str, Any]) -> None:
    """The talk goes on: what the model knows of these files is no longer so."""
    paths = [str(file["path"]) for file in data.get("files", ())]
    if not paths:
        return
    text = f"{what}: {format_names(paths, MAX_NAMED_PATHS)}. Read them again before you change them."
    message = await conversation.session.record_message("system", (TextPart(text),))
    conversation.prompt.add_message(message, {})
