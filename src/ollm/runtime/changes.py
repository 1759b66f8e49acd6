"""Steps that change a conversation rather than continue it: model, window, mode, rewind.

Each is recorded in the session, after a snapshot of the context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import format_stamp
from ollm.domain.context import Approval, ModeName
from ollm.domain.errors import UsageError
from ollm.domain.events import ModeChanged, Notice
from ollm.domain.messages import Message
from ollm.domain.session import ModeTrigger, PlanState, PlanStep, Session, SnapshotTrigger
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.prefix import count_instruction_tokens
from ollm.services import modes
from ollm.tools.framework.tool_selection import FindTool, select_tools

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts
    from ollm.tools.framework.base import ToolSpec


def update_tools(conversation: ConversationParts) -> None:
    """Offer the model the tools of its mode."""
    prompt, model = conversation.prompt, conversation.state.model
    prompt.set_forms(model.facts)
    if model.facts.chats_only:
        prompt.set_tools((), when_folded=None)
        return
    mode, window, most = prompt.mode, model.window, model.facts.max_tools
    tools, permitted = judge_foreign_tools(conversation)
    instructions = count_instruction_tokens(window, mode)

    def select(*, folded: bool) -> tuple[ToolSchema, ...]:
        return select_tools(
            mode, tools, window, most, folded=folded, instruction_tokens=instructions, permitted=permitted
        )

    prompt.set_tools(select(folded=False), when_folded=lambda: select(folded=True))


def judge_foreign_tools(conversation: ConversationParts) -> tuple[list[ToolSpec], frozenset[str]]:
    """Return the tools without external ones that a rule denies, and the names of those a rule allows. Also
    registers the tool that finds tools that do not fit. Evaluates policy only if there are such tools and rules."""
    registry = conversation.registry.get()
    tools = registry.list()
    foreign = [tool for tool in tools if tool.category is None]
    if not foreign:
        return tools, frozenset()
    judged = foreign if conversation.state.has_rules else ()
    actions = {tool.name: conversation.policy.get().get_plain_action(tool.name) for tool in judged}
    denied = {name for name, action in actions.items() if action == "deny"}
    found = tuple(tool.schema for tool in foreign if tool.name not in denied)
    registry.register(FindTool, lambda: found)
    permitted = frozenset(name for name, action in actions.items() if action == "allow")
    return [tool for tool in tools if tool.name not in denied], permitted


def get_approval(conversation: ConversationParts) -> Approval:
    """Return the current approval setting. A policy that is not built yet cannot have changed it."""
    policy, state = conversation.policy.built, conversation.state
    return policy.approval if policy else modes.MODES[conversation.prompt.mode].approval or state.approval


async def change_model(conversation: ConversationParts, name: str) -> None:
    """Switch to another model from the configured servers."""
    if conversation.state.before_model_change:  # Loading the new model may unload the old one.
        await conversation.state.before_model_change()
    chosen = await conversation.choose_model(name)
    await take_snapshot(conversation, "window")
    await conversation.state.model.provider.close()
    conversation.state.model = chosen
    conversation.prompt.counter.calibrate(chosen.facts.token_factor, chosen.facts.token_samples)
    conversation.prompt.set_window(chosen.window, chosen.name)
    conversation.prompt.set_thinking(chosen.origin, chosen.replay)
    conversation.prompt.meter.set_shown_thinking(chosen.facts.shown_thinking)
    update_tools(conversation)
    changes = {"model": chosen.name, "provider": chosen.provider.name, "contextWindow": chosen.window}
    await conversation.session.update_metadata(changes)
    await record_step(conversation, {"step": "model", "model": chosen.name, "window": chosen.window})


async def change_window(conversation: ConversationParts, window: int) -> None:
    await take_snapshot(conversation, "window")
    conversation.state.model.window = window
    conversation.prompt.set_window(window)
    update_tools(conversation)
    await conversation.session.update_metadata({"contextWindow": window})
    await record_step(conversation, {"step": "window", "window": window})


async def change_mode(conversation: ConversationParts, mode: ModeName, trigger: ModeTrigger, confidence: float) -> None:
    before = conversation.prompt.mode
    if mode == before:
        return
    await take_snapshot(conversation, "mode")
    conversation.prompt.set_mode(mode)
    await apply_mode(conversation, before, trigger, confidence)


async def apply_mode(
    conversation: ConversationParts, before: ModeName, trigger: ModeTrigger, confidence: float = 1.0
) -> None:
    """Update tools, approval and history for the prompt's current mode."""
    mode = conversation.prompt.mode
    step = modes.make_mode_change(before, mode, trigger, confidence, clock=conversation.clock)
    conversation.policy.get().approval = modes.MODES[mode].approval or conversation.state.approval
    update_tools(conversation)
    await conversation.session.add_to_history("mode_history", step)
    conversation.stream.emit(ModeChanged(from_=before, to=mode, trigger=trigger, confidence=confidence))


PAUSED_KEY = "plan"
PAUSED_TEXT = "The plan is paused: do not continue it unless asked."


def pause_plan(conversation: ConversationParts, paused: bool) -> None:
    """Pause the plan or resume it. While it is paused, every request mentions that."""
    if paused:
        conversation.prompt.entries.add_context(PAUSED_KEY, PAUSED_TEXT, source="system", volatile=True)
    else:
        conversation.prompt.entries.remove_context(PAUSED_KEY)


def get_plan(conversation: ConversationParts) -> PlanState:
    """Return the plan, which is the todo list."""
    steps = tuple(
        PlanStep(text=todo.text, done=todo.status == "done") for todo in conversation.notes.get().list_todos()
    )
    current = next((index for index, step in enumerate(steps) if not step.done), len(steps))
    own = conversation.prompt.entries.get_context_by_source("system")
    return PlanState(steps=steps, current_step_index=current, paused=any(entry.key == PAUSED_KEY for entry in own))


async def restore_snapshot(conversation: ConversationParts, snapshot_id: str) -> None:
    before = conversation.prompt.mode
    context = await conversation.snapshots.restore_snapshot(snapshot_id, conversation.prompt.capture_state())
    conversation.prompt.restore(context)
    if conversation.prompt.mode != before:
        await apply_mode(conversation, before, "manual")
    await record_step(conversation, {"step": "restore", "snapshotId": snapshot_id})


async def rewind_context(conversation: ConversationParts, step: Mapping[str, Any]) -> None:
    """Restore the context before a message, and record the step. Nothing leaves the archive."""
    number, snapshot_id = step["before"], await take_snapshot(conversation, "rewind")
    context = conversation.prompt.get_active_context()
    kept = tuple(entry for entry in context.messages if not entry.sources or max(entry.sources) < number)
    older = tuple(point for point in context.checkpoints if not point.message_ids or max(point.message_ids) < number)
    conversation.prompt.restore(msgspec.structs.replace(context, messages=kept, checkpoints=older), cause="rewind")
    await record_step(conversation, {**step, "snapshotId": snapshot_id})


REWIND_STEPS = ("rewind", "rewind-files", "redo", "redo-files")


def find_open_rewinds(history: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the rewinds that no redo has undone."""
    found: list[dict[str, Any]] = []
    for step in history:
        if step.get("step") in ("rewind", "rewind-files"):
            found.append(dict(step))
        elif step.get("step") == "redo" and found:
            found.pop()
    return found


def is_rewound(session: Session, number: int) -> bool:
    """Return True if message `number` and all later ones are already out of the context."""
    history, since = session.metadata.context_history, find_last_said(session)
    since = max((since, *(step["timestamp"] for step in history if step.get("step") == "restore")))
    talk = [step for step in find_open_rewinds(history) if step["step"] == "rewind"]
    return any(step["before"] <= number and step["timestamp"] > since for step in talk)


def find_redoable_step(session: Session, *, force: bool = False) -> dict[str, Any]:
    """Return the last rewind not undone, if the user sent no message since. With `force`, return a redo that left
    files unchanged, if it was the last step."""
    history, said = session.metadata.context_history, find_last_said(session)
    known = [step for step in history if step.get("step") in REWIND_STEPS and step.get("timestamp", "") > said]
    left = bool(known) and known[-1].get("left", 0) > 0 and known[-1].get("record") is not None
    if left and force:
        return dict(known[-1])
    steps = find_open_rewinds(history)
    if not steps or steps[-1]["timestamp"] <= said:
        raise UsageError("Nothing to redo.", action="Files that were left alone come with `force`." if left else "")
    return steps[-1]


def find_last_said(session: Session) -> str:
    """Return the time of the user's last message."""
    return max((message.timestamp for message in session.messages if message.role == "user"), default="")


def describe_redo(step: Mapping[str, Any]) -> str:
    if step["step"] in ("rewind", "rewind-files"):
        return f"Undid the rewind to before message {step['before']}."
    return "Restored what the last redo left alone."


def make_redo_step(step: Mapping[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    """Build the step that records the redo of `step`, with the keys needed to find it again."""
    name = "redo" if step["step"] in ("rewind", "rewind-files") else "redo-files"
    return {"step": name, **{key: step[key] for key in ("before", "record") if key in step}, **done}


def find_user_message(session: Session, number: int) -> Message:
    """Find a user message by its number."""
    for message in session.messages:
        if message.id == number and message.role == "user":
            return message
    action = "See the numbers in /history or with `ollm sessions view`."
    raise UsageError(f"Message {number} is not one of your messages.", action=action)


async def take_snapshot(conversation: ConversationParts, trigger: SnapshotTrigger) -> str | None:
    """Return the id of the snapshot, or None if none was taken."""
    if conversation.session.id is None:
        return None
    made = await conversation.snapshots.create_snapshot(conversation.prompt.capture_state(), trigger)
    return made.id if made else None


async def record_step(conversation: ConversationParts, step: dict[str, Any]) -> None:
    """Add a line to `contextHistory`."""
    stamped = {**step, "timestamp": format_stamp(conversation.clock())}
    await conversation.session.add_to_history("context_history", stamped)


async def auto_switch_mode(conversation: ConversationParts, text: str) -> None:
    """Propose the mode that a model chose for a message, or switch to it, per `modes.autoSwitch`. Not called if that
    is off."""
    from ollm.runtime.chores import MODE_CONFIDENCE_SHARE, choose_mode

    found = await choose_mode(conversation, text)
    if found in (None, conversation.prompt.mode) or found in conversation.state.proposed_modes:
        return
    if conversation.state.auto_switch == "on":
        await change_mode(conversation, found, "auto", MODE_CONFIDENCE_SHARE)
        return
    conversation.state.proposed_modes.add(found)
    conversation.stream.emit(Notice(level="info", text=f"This looks like work for mode {found}: /mode {found}"))
