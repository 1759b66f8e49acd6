"""`/worktree`: open, list and finish the worktrees of a workspace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import WrongUsage, render_table, slash_command

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts, WorktreeActions


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
    text = (
        render_table(("worktree", "changes", "folder"), rows) if rows else "No worktrees. `/worktree NAME` makes one."
    )
    return CommandReply(text=text, data=found)


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
