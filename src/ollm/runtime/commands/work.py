"""Commands about the work: goals, plan, todos, memory, undo, diagnostics, worktrees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from ollm.domain.context import make_note_entry
from ollm.domain.errors import OllmError, UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.changes import get_plan, pause_plan
from ollm.runtime.commands.base import (
    WrongUsage,
    fence_text,
    list_in_reply,
    parse_number,
    slash_command,
    split_subcommand,
)
from ollm.services.edit_ledger import CopyKind, EditLedger, LastEdit
from ollm.services.goals import describe_goals
from ollm.store.notes import PERSONAL_PREFIX
from ollm.system.paths import show_name
from ollm.tools.framework.base import ToolContext

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts, WorktreeActions

MAX_NOTE_CHARACTERS = 80


async def take_back_edit(ledger: EditLedger, files: ToolContext, kind: CopyKind) -> tuple[LastEdit, bytes] | None:
    """Revert or repeat the last edit, byte for byte. Returns it with the content it replaced, or None if there is none
    left. Raises OllmError if others have changed the file since, or the editor does not let it be changed."""
    from ollm.tools.files.file_change import open_files, read_shown

    while edit := ledger.find_last_edit(kind):
        context = await open_files(files, [edit.path])
        now = read_shown(context, edit.path) if edit.path.exists() else None
        changes = edit.changes_file(now)
        if changes:
            ledger.save_opposite(edit, now)
            await _restore_file(edit, context)
        edit.copy.unlink()
        if changes:
            return edit, now or b""
    return None


async def _restore_file(edit: LastEdit, context: ToolContext) -> None:
    from ollm.tools.files.file_change import refuse_unsaved, write_buffer

    given = str(edit.path)
    if edit.before is None:
        context.boundary.remove_file(given)
        return
    refuse_unsaved(context, given)
    if not await write_buffer(context, edit.path, edit.before):
        context.boundary.write_file(given, edit.before)


@slash_command("goal", usage="[set | subtask | decision | lock | artifact | blocker TEXT | complete]")
async def goal(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or set the session goal and decisions.

    Every request carries the goal, even after old messages were compacted.

    - `set TEXT`: what is wanted; `subtask TEXT`: a part of it
    - `decision TEXT`: what was decided; `lock TEXT`: a decision that is kept word for word when old messages are
      compacted
    - `artifact TEXT`, `blocker TEXT`: what was made, what blocks the work
    - `complete`: the goal is reached"""
    keeper = conversation.prompt.goals
    name, text = split_subcommand(arguments)
    match name:
        case "":
            return CommandReply(
                text=describe_goals(keeper.stack) or "No goal is set.", data=msgspec.to_builtins(keeper.stack)
            )
        case "complete":
            done = keeper.complete()
        case "set":
            done = keeper.set(text)
        case "decision" | "lock":
            done = keeper.decision(text, locked=name == "lock")
        case "subtask" | "artifact" | "blocker":
            done = keeper.note(name, text)
        case _:
            raise WrongUsage
    return CommandReply(text=done, data=msgspec.to_builtins(keeper.stack))


@slash_command("plan", usage="[pause | resume]", during_turn=True)
async def plan(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show, pause or resume the plan.

    The plan is the todo list. While it is paused, every request tells the model not to go on with it."""
    word = arguments.strip()
    if word not in ("", "pause", "resume"):
        raise WrongUsage
    if word:
        pause_plan(conversation, word == "pause")
    state = get_plan(conversation)
    if not state.steps:
        return CommandReply(text="No plan yet; the model creates one as a todo list.", data=state)
    steps = [f"{'✔' if step.done else '→' if step == state.current_step else '·'} {step.text}" for step in state.steps]
    head = f"{state.done_count} of {len(state.steps)} done{', paused' if state.paused else ''}."
    return CommandReply(text="\n".join([head, "", *steps]), data=msgspec.to_builtins(state))


@slash_command("todos", usage="[add TEXT | done ID | remove ID | carry]")
async def todos(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or change the todo list.

    Without words: the list with its ids. The model keeps the same list. Each session has its own; `carry` adds the open
    todos of the last other session here that has some."""
    notes = conversation.notes.get()
    name, text = split_subcommand(arguments)
    match name:
        case "":
            pass
        case "add" if text:
            notes.add_todo(text)
        case "carry":
            others = (one for one in conversation.list_sessions() if one.session_id != conversation.session.id)
            steps = next(filter(None, ([step.text for step in one.plan.steps if not step.done] for one in others)), [])
            if not steps:
                raise UsageError("No other session here has open todos.")
            for step in steps:
                notes.add_todo(step)
        case "done" | "remove" if text:
            found_one = notes.complete_todo(text) if name == "done" else notes.remove_todo(text)
            if not found_one:
                raise UsageError(f"There is no todo {text}.", action="See the numbers in /todos.")
        case _:
            raise WrongUsage
    found = notes.list_todos()
    rows = [(todo.id, "✔" if todo.status == "done" else "", todo.text) for todo in found]
    return list_in_reply(("id", "", "todo"), rows, "No todos.", found)


@slash_command("memory", usage="[get KEY | set KEY VALUE | note TEXT | delete KEY]")
async def memory(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or change this workspace's memory.

    Values of this workspace that outlive sessions; the model can read and write them too. `note TEXT`, or `#TEXT` as a
    message, tells the model now and in all later sessions."""
    notes = conversation.notes.get()
    found = arguments.split(None, 2)
    match found:
        case []:
            keys = notes.list_keys()
            lines = [f"- {key}: {' '.join(str(notes.get(key)).split())[:MAX_NOTE_CHARACTERS]}" for key in keys]
            return CommandReply(text="\n".join(lines) or "Nothing in memory.", data=keys)
        case ["get", key]:
            value = notes.get(key)
            if value is None:
                raise make_missing_key_error(key)
            return CommandReply(text=f"{key}: {value}", data=value)
        case ["set", key, value]:
            notes.set(key, value)
            return CommandReply(text=f"Remembered: {key}")
        case ["note", *words] if words:
            numbers = (parse_number(key.removeprefix("note-")) or 0 for key in notes.list_keys())
            key, text = f"note-{max(numbers, default=0) + 1}", " ".join(words)
            notes.set(key, text)
            conversation.prompt.entries.add_entry(make_note_entry(key, text))
            conversation.prompt.refresh_system_prompt()
            return CommandReply(text=f"Remembered as {key}: {text}")
        case ["delete", key]:
            if not notes.delete(key):
                raise make_missing_key_error(key)
            if key.startswith(PERSONAL_PREFIX) and conversation.prompt.entries.remove_context(key):
                conversation.prompt.refresh_system_prompt()
            return CommandReply(text=f"Forgotten: {key}")
        case _:
            raise WrongUsage


def make_missing_key_error(key: str) -> UsageError:
    return UsageError(f"Nothing is remembered under {key!r}.", action="List what is with /memory.")


@slash_command("undo")
async def undo(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Undo the last file edit.

    Takes back edits by the tools, one at a time, newest first; `/redo` makes the edit again. What a command changed
    goes back with `/rewind`."""
    if arguments.strip() not in ("", "yes"):
        raise WrongUsage
    if reply := await swap_edit(conversation, "undo"):
        return reply
    raise UsageError("Nothing to undo.")


async def swap_edit(conversation: ConversationParts, kind: CopyKind) -> CommandReply | None:
    """Undo the last edit, or make it again; None when there is none."""
    async with record_undo(conversation):
        found = await take_back_edit(conversation.edits.get(), conversation.files.get(), kind)
    if found is None:
        return None
    from ollm.tools.files.file_change import make_diff

    done, now = found
    inside = done.path.is_relative_to(conversation.workspace)
    name = show_name(str(done.path.relative_to(conversation.workspace) if inside else done.path))
    did = "Deleted" if done.before is None else "Undid the last edit of" if kind == "undo" else "Redid the edit of"
    back = "/redo brings it back" if kind == "undo" else "/undo takes it back"
    texts = (content.decode("utf-8", "replace") for content in (now, done.before or b""))
    change = "" if done.before is None else make_diff(name, *texts).removesuffix("\n")
    shown = fence_text(change, "diff") if change.strip() else ""
    return CommandReply(text=f"{did} `{name}`; {back}.\n\n{shown}".rstrip(), data={"path": show_name(str(done.path))})


@asynccontextmanager
async def record_undo(conversation: ConversationParts) -> AsyncIterator[None]:
    """Record an undone edit as a change of this session, so that /rewind and /diff know of it."""
    session_id = conversation.session.id
    checkpoints = conversation.checkpoints.get() if conversation.checkpoints_enabled and session_id else None
    newest = conversation.session.load_page(None, 1)
    if checkpoints and session_id and newest and checkpoints.list_records(session_id):
        with suppress(OllmError, OSError):
            await asyncio.to_thread(checkpoints.begin, session_id, int(newest[-1]["id"]), "undo")
    try:
        yield
    finally:
        if checkpoints and checkpoints.begun:
            with suppress(OllmError, OSError):
                await asyncio.to_thread(checkpoints.end)


@slash_command("diagnostics", usage="[FILE...]")
async def diagnostics(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List errors and warnings, and the language servers.

    Without files: those of all files that language servers know. A server starts with the first edit of its language,
    or when you name a file here."""
    spec = conversation.registry.get().get("diagnostics")
    if spec is None:
        raise UsageError("The tool diagnostics is not available here.")
    result = await spec.parse({"paths": arguments.split()}).run(conversation.files.get())
    return CommandReply(text=fence_text(result.return_display), data=result.llm_content)


@slash_command("worktree", usage="[NAME | merge [NAME] | drop [NAME]]")
async def worktree(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Work in a git worktree, or finish one.

    `NAME` opens a session in the worktree of that name, which is created if there is none. `merge` merges a worktree
    into the branch of the main folder and removes it; `drop` removes it without merging. Without arguments: a list."""
    words, actions = arguments.split(), conversation.worktrees.get()
    match words:
        case []:
            return await asyncio.to_thread(_list_worktrees, actions)
        case ["merge" | "drop" as ending, *name]:
            return await asyncio.to_thread(_finish, actions, ending, name)
        case [name]:
            folder = await actions.open(name)
            return CommandReply(text=f"Worktree {name}: {folder}", follow_up="open-folder", argument=str(folder))
    raise WrongUsage


def _list_worktrees(actions: WorktreeActions) -> CommandReply:
    current = actions.find_current()
    found = [(one.name, actions.worktrees.describe(one), str(one.path)) for one in actions.worktrees.list_named()]
    rows = [(f"**{name}**" if current and name == current.name else name, *rest) for name, *rest in found]
    none = "No worktrees. `/worktree NAME` makes one."
    return list_in_reply(("worktree", "changes", "folder"), rows, none, found)


def _finish(actions: WorktreeActions, ending: Literal["merge", "drop"], words: list[str]) -> CommandReply:
    current, sure = actions.find_current(), words[-1:] == ["yes"]
    names = words[:-1] if sure else words
    chosen = actions.worktrees.get(names[0]) if names else current
    if chosen is None or len(names) > 1:
        raise WrongUsage
    if not sure and (question := actions.worktrees.find_question(chosen, ending)):
        return CommandReply(text=f"{question} To confirm: `/worktree {' '.join((ending, *names))} yes`.", ok=False)
    if current is None or chosen.name != current.name:
        return CommandReply(text=actions.finish(chosen, ending))
    text = f"`ollm worktree {ending} {current.name}` finishes it once this session is closed."
    return CommandReply(text=text, follow_up="finish-worktree", argument=ending)
