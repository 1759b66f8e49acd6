"""Commands about the work: goals, the plan, todos, memory, and taking an edit back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.domain.errors import UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import CommandTable, fenced, table, words, wrong_usage
from ollm.services.goals import described

if TYPE_CHECKING:
    from ollm.runtime.conversation import LocalConversation

GOAL = "[set|subtask|decision|lock|artifact|blocker TEXT | complete]"
TODOS = "[add TEXT | done ID | remove ID]"
MEMORY = "[get KEY | set KEY VALUE | delete KEY]"
PLAN = "[pause | resume]"


def add_to(commands: CommandTable) -> None:
    commands.command("goal", "Show or set what this is about; decisions can be locked.", usage=GOAL)(goal)
    commands.command("plan", "Show where the plan stands; pause it or go on.", usage=PLAN, during_turn=True)(plan)
    commands.command("todos", "Show or change the todo list.", usage=TODOS)(todos)
    commands.command("memory", "Show or change what is remembered for this workspace.", usage=MEMORY)(memory)
    commands.command("undo", "Take the last edit of a file back.", usage="[yes]")(undo)


async def goal(conversation: LocalConversation, arguments: str) -> CommandReply:
    keeper = conversation.parts.prompt.goals
    name, text = split(arguments)
    match name:
        case "":
            return CommandReply(
                text=described(keeper.stack) or "No goal is set.", data=msgspec.to_builtins(keeper.stack)
            )
        case "complete":
            done = keeper.complete()
        case "lock":
            done = keeper.decision(text, locked=True)
        case "set" | "subtask" | "decision" | "artifact" | "blocker":
            done = getattr(keeper, name)(text)
        case _:
            raise wrong_usage("goal", GOAL)
    return CommandReply(text=done, data=msgspec.to_builtins(keeper.stack))


async def plan(conversation: LocalConversation, arguments: str) -> CommandReply:
    holder = conversation.parts.late.plan
    word = arguments.strip()
    if word not in ("", "pause", "resume"):
        raise wrong_usage("plan", PLAN)
    if word:
        holder.pause(word == "pause")
    state = holder.state()
    if not state.steps:
        return CommandReply(text="There is no plan; the model keeps one with its todo list.", data=state)
    steps = [f"{'✔' if step.done else '→' if step == state.current else '·'} {step.text}" for step in state.steps]
    head = f"{state.done} of {len(state.steps)} done{', paused' if state.paused else ''}."
    return CommandReply(text="\n".join([head, "", *steps]), data=msgspec.to_builtins(state))


async def todos(conversation: LocalConversation, arguments: str) -> CommandReply:
    notes = conversation.parts.late.notes
    name, text = split(arguments)
    match name:
        case "":
            pass
        case "add" if text:
            notes.add_todo(text)
        case "done" if text:
            notes.complete_todo(text)
        case "remove" if text:
            notes.remove_todo(text)
        case _:
            raise wrong_usage("todos", TODOS)
    found = notes.todos()
    rows = [(todo.id, "✔" if todo.status == "done" else "", todo.text) for todo in found]
    return CommandReply(
        text=table(("id", "", "todo"), rows) if rows else "Nothing is to be done.", data=msgspec.to_builtins(found)
    )


async def memory(conversation: LocalConversation, arguments: str) -> CommandReply:
    notes = conversation.parts.late.notes
    found = words(arguments, 3)
    match found:
        case []:
            keys = notes.keys()
            return CommandReply(text="\n".join(f"- {key}" for key in keys) or "Nothing is remembered.", data=keys)
        case ["get", key]:
            value = notes.get(key)
            return CommandReply(text=f"{key}: {value}", data=value)
        case ["set", key, value]:
            notes.set(key, value)
            return CommandReply(text=f"Remembered: {key}")
        case ["delete", key]:
            notes.delete(key)
            return CommandReply(text=f"Forgotten: {key}")
        case _:
            raise wrong_usage("memory", MEMORY)


async def undo(conversation: LocalConversation, arguments: str) -> CommandReply:
    parts = conversation.parts
    word = arguments.strip()
    if word not in ("", "yes"):
        raise wrong_usage("undo", "[yes]")
    if word == "":
        return CommandReply(text=undo_told(conversation))
    done = parts.late.edits.undo(parts.late.policy.boundary)
    if done is None:
        raise UsageError("There is no edit to take back.")
    return CommandReply(text=f"{done.path} {'is removed again' if done.removed else 'is as it was before the edit'}.")


def undo_told(conversation: LocalConversation) -> str:
    """What taking the last edit back would change."""
    from ollm.tools.files.file_change import diff_of

    parts = conversation.parts
    found = parts.late.edits.next_undo()
    if found is None:
        raise UsageError("There is no edit to take back.")
    path, before = found
    if before is None:
        return f"`/undo yes` removes {path}, which the last edit created."
    boundary = parts.late.policy.boundary.approving([path])
    now = b""
    if path.exists():
        with boundary.open_file(str(path)) as file:
            now = file.read()
    change = diff_of(path.name, now.decode("utf-8", "replace"), before.decode("utf-8", "replace"))
    return f"`/undo yes` puts {path} back as it was before the last edit:\n\n{fenced(change.rstrip(), 'diff')}"


def split(arguments: str) -> tuple[str, str]:
    found = words(arguments, 2)
    return (found[0] if found else "", found[1] if len(found) > 1 else "")
