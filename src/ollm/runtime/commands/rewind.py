"""Commands that go back: `/rewind` for conversation and files, and `/redo`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, get_args

from ollm.domain.errors import OllmError, UsageError
from ollm.domain.messages import TextPart
from ollm.domain.struct import Data
from ollm.runtime import changes, rewind
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import WrongUsage, fence_text, parse_number, slash_command
from ollm.runtime.commands.work import swap_edit
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.domain.context import ActiveContext
    from ollm.runtime.parts import ConversationParts
    from ollm.services.file_checkpoints.tree import RestorePlan

log = logging.getLogger(__name__)
RewindScope = Literal["talk", "files", "both"]
MAX_NAMED_PATHS = 20
MAX_LISTED_MESSAGES = 1_000
MAX_SHOWN_CHARS = 300


class RewindRequest(Data, frozen=True):
    """The parsed arguments of `/rewind`. `scope` is None if not given."""

    number: int
    scope: RewindScope | None
    diff: bool
    force: bool
    yes: bool


def parse_rewind(arguments: str) -> RewindRequest:
    words = arguments.split()
    number = parse_number(words[0].removeprefix("#")) if words else None
    rest = set(words[1:])
    scopes: list[RewindScope] = [scope for scope in get_args(RewindScope) if scope in rest]
    known = {*get_args(RewindScope), "diff", "force", "yes"}
    if number is None or len(scopes) > 1 or rest - known:
        raise WrongUsage
    scope = scopes[0] if scopes else None
    return RewindRequest(number=number, scope=scope, diff="diff" in rest, force="force" in rest, yes="yes" in rest)


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
    session = conversation.session.load()
    message = changes.find_user_message(session, request.number)
    text = join_typed_text(part.text for part in message.parts if isinstance(part, TextPart))
    plan, note = await plan_files(conversation, request)
    scope = request.scope or ("both" if plan and (plan.steps or plan.skipped) else "talk")
    if not request.yes:
        return await preview_rewind(conversation, request, scope, plan, note)
    data: dict[str, Any] = {"text": text}
    talk = scope != "files" and not changes.is_rewound(session, request.number)
    if rewind.changes_nothing(plan, talk=talk):
        data |= rewind.to_plain_data(plan) if plan else {}
        said = [rewind.describe_nothing(request.number, plan, files_only=scope == "files"), *([note] if note else [])]
        return CommandReply(text="\n\n".join(said), data=data)
    conversation.edits.get().forget_undone()
    said = [*await carry_out(conversation, request.number, scope, plan, data), *([note] if note else [])]
    return CommandReply(text="\n\n".join(said), data=data)


async def carry_out(
    conversation: ConversationParts, number: int, scope: RewindScope, plan: RestorePlan | None, data: dict[str, Any]
) -> list[str]:
    """Go back; what was done, in words, and for programs in `data`."""
    result = await create_flow(conversation).run(rewind.make_rewind_step(number, scope), scope, plan)
    data |= rewind.to_plain_data(result) if result else {}
    said = [rewind.describe_result(result)] if result else []
    if scope != "files":
        return [f"Rewound to before message {number}.", *said]
    await tell_model(conversation, f"The user put files back as they were before message {number}", data)
    return [rewind.describe_outcome(number, result), *said]


def create_flow(conversation: ConversationParts, before: ActiveContext | None = None) -> rewind.RewindFlow:
    """Create the rewind of this conversation. `before` is the context that a redo brings back."""

    async def record(step: rewind.Step) -> None:
        if step["step"] == "rewind":
            await changes.rewind_context(conversation, step["before"], step)
        elif before is not None:
            await changes.redo_context(conversation, before, step)
        else:
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


async def plan_files(conversation: ConversationParts, request: RewindRequest) -> tuple[RestorePlan | None, str]:
    """What would happen to files, and what is to be said where nothing can. Raises it where files were asked for."""
    from ollm.services.file_checkpoints.capture import CheckpointsOffError

    if request.scope == "talk":
        return None, ""
    try:
        return await create_flow(conversation).plan(request.number, force=request.force), ""
    except OllmError as error:
        if request.scope is not None:
            raise
        if request.yes and not isinstance(error, CheckpointsOffError):
            raise UsageError(
                error.message, action=f"Only the conversation goes back with /rewind {request.number} talk yes."
            ) from error
        return None, f"Files stay as they are: {error.message}"


async def preview_rewind(
    conversation: ConversationParts, request: RewindRequest, scope: RewindScope, plan: RestorePlan | None, note: str
) -> CommandReply:
    number, lines = request.number, []
    if scope != "files":
        lines.append(f"This removes message {number} and everything after it from the context; the history stays.")
    if plan and scope != "talk":
        lines.append(rewind.describe_plan(plan))
        if request.diff:
            checkpoints = conversation.checkpoints.get()
            diffs = await asyncio.to_thread(lambda: rewind.render_diffs(checkpoints, plan.files))
            lines.append(fence_text("\n".join(diffs), "diff") if diffs else "")
    elif scope != "talk":
        lines.append(f"No files were changed since message {number}.")
    else:
        lines.append(note or "Your files stay.")
    named = [scope] if request.scope or note else []
    force = " force" if request.force else ""
    words = " ".join([str(number), *named]) + force
    more = ""
    if plan and scope != "talk":
        more = f" The changes: /rewind {words} diff." if not request.diff else ""
        more += (
            f" Only one of both: /rewind {number} talk yes, /rewind {number} files{force} yes."
            if scope == "both"
            else ""
        )
    lines.append(f"To confirm: /rewind {words} yes.{more}")
    data = {"scope": scope, "yes": False, **(rewind.to_plain_data(plan) if plan else {"files": [], "skipped": []})}
    return CommandReply(text="\n\n".join(line for line in lines if line), data=data)


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
    flow = create_flow(conversation, context)
    plan = await flow.plan_redo(step, force=bool(words))
    result = await flow.run(changes.make_redo_step(step, {}), rewind.find_scope(step), plan)
    said, data = [changes.describe_redo(step)], rewind.to_plain_data(result) if result else {}
    if result:
        said.append(rewind.describe_result(result))
        said += ["`/redo force` puts back what was left alone too."] if result.skipped and not words else []
    if context is None:
        await tell_model(conversation, "The user put files back as they were before that", data)
    return CommandReply(text="\n\n".join(said), data=data)


async def find_context_before(conversation: ConversationParts, step: dict[str, Any]) -> ActiveContext:
    """The context before a rewind, found before any file changes: as this process remembers it, as its snapshot does,
    or as the archive has it."""
    if conversation.state.rewound:
        return conversation.state.rewound[-1]
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
    more = f" and {len(paths) - MAX_NAMED_PATHS} more" if len(paths) > MAX_NAMED_PATHS else ""
    text = f"{what}: {', '.join(paths[:MAX_NAMED_PATHS])}{more}. Read them again before you change them."
    message = await conversation.session.record_message("system", (TextPart(text),))
    conversation.prompt.add_message(message, {})
