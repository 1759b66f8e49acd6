"""Commands that change how the agent works: model, mode, approval, trust; and its capabilities."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, get_args

import msgspec

from ollm.config.change import parse_setting
from ollm.config.settings import ModelSettings
from ollm.domain.context import Approval, ModeName
from ollm.providers.base import name_model, name_models
from ollm.providers.request_settings import format_settings, list_request_settings
from ollm.runtime import changes
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import WrongUsage, list_in_reply, render_options, render_table, slash_command
from ollm.runtime.commands.help_text import render_help
from ollm.runtime.model.model import describe_model
from ollm.runtime.prompt.project_context import find_skills
from ollm.services.modes import MODES

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts

MODE_NAMES: tuple[ModeName, ...] = get_args(ModeName)
ABOUT_MODES = {
    "assistant": "answers and explains; reads only",
    "plan": "plans and changes nothing",
    "code": "writes and changes code",
    "debug": "finds causes, then changes",
    "auto": "the mode follows each request",
}
ABOUT_APPROVALS = {
    "read-only": "refuses everything that may change files",
    "ask": "asks before edits, and commands that do more than read",
    "accept-edits": "asks before commands, not before edits in the workspace",
    "yolo": "asks only before it touches protected files",
}
MODE_HELP = render_options(ABOUT_MODES)
APPROVAL_HELP = f"""{render_options(ABOUT_APPROVALS)}

Shift-Tab goes from one to the next. Rules that deny hold at every level."""
APPROVALS: tuple[Approval, ...] = get_args(Approval)


@slash_command("model", usage="[NAME | set KEY VALUE | unset KEY]")
async def model(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or switch the model.

    Without a name: the models the server lists, how this one was chosen, and the settings its requests carry. A switch
    keeps the conversation; what does not fit into the new window is folded. `/model set temperature 0.2` changes a
    setting of its requests until the chat ends; `models` in the configuration keeps it."""
    word, _, rest = arguments.strip().partition(" ")
    if word in ("set", "unset"):
        return change_request_setting(conversation, word, rest.strip())
    if name := arguments.strip():
        return await switch_model(conversation, name)
    return await list_models(conversation)


async def switch_model(conversation: ConversationParts, name: str) -> CommandReply:
    await changes.change_model(conversation, name)
    now = conversation.state.model
    conversation.state.chosen_model = now.name
    text = f"Switched to {name_model(now.name)} ({now.window:,}-token context)."
    unread = await conversation.state.count_unread() if conversation.state.count_unread else None
    if price := now.describe_reading(conversation.prompt.used_tokens if unread is None else unread):
        text += f" Your next message {price}."
    return CommandReply(text=text, data={"model": now.name})


async def list_models(conversation: ConversationParts) -> CommandReply:
    now = conversation.state.model
    offered = await now.provider.models()
    names = [found.name for found in offered]
    short = name_models(names)
    rows = [(name, m.state, "← now" if m.name == now.name else "") for name, m in zip(short, offered, strict=True)]
    listed = render_table(("model", "state", ""), rows) if rows else ""
    text = f"**{name_model(now.name)}** at {now.provider.base_url} ({now.window:,}-token context)."
    sent, info = list_request_settings(now.settings), await describe_model(now.provider, now.name)
    roles = conversation.roles.get().describe(conversation.state.seconds) if conversation.roles else []
    said = [
        render_table(("role", "model", "server", "time"), roles) if roles else "",
        f"Sent with every request: {format_settings(sent)}." if sent else "",
        f"The server's own: {format_settings(info.sampling)}." if info and info.sampling else "",
    ]
    notes = {now.name: format_settings(sent)}
    about = {found.name: " · ".join(filter(None, (found.state, notes.get(found.name)))) for found in offered}
    data = {"model": now.name, "offered": offered, "options": names, "about": about, "settings": sent}
    data["roles"] = [dict(zip(("role", "model", "server", "time"), row, strict=True)) for row in roles]
    return CommandReply(text="\n\n".join(filter(None, (text, listed, *said, now.why))), data=data)


def change_request_setting(conversation: ConversationParts, word: str, rest: str) -> CommandReply:
    now = conversation.state.model
    key, _, text = rest.partition(" ")
    known = [name for name in ModelSettings.__struct_encode_fields__ if name != "headers"]
    if key not in known or bool(text.strip()) != (word == "set"):
        raise WrongUsage(f"set KEY VALUE | unset KEY, with KEY one of {', '.join(known)}")
    shown = list_request_settings(now.settings)
    if word == "set":
        shown[key] = parse_setting(f"models.{now.name}.{key}", text.strip())
    else:
        shown.pop(key, None)
    headers = now.settings.headers if now.settings else {}
    now.settings = msgspec.convert({**shown, "headers": headers}, ModelSettings)
    sent = list_request_settings(now.settings)
    command = f"`ollm config set models.{name_model(now.name)}.{key} {text.strip()}`"
    keep = f" Until this chat ends; to keep it: {command}." if word == "set" else ""
    text = f"Sent with every request: {format_settings(sent) or 'no settings'}.{keep}"
    return CommandReply(text=text, data={"model": now.name, "settings": sent})


@slash_command("mode", usage="[NAME|auto]", more=MODE_HELP)
async def mode(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or change the mode."""
    if not arguments:
        return CommandReply(
            text=f"Mode: **{conversation.prompt.mode}**. Options: {', '.join(ABOUT_MODES)}.",
            data={"mode": conversation.prompt.mode, "options": [*MODE_NAMES, "auto"], "about": ABOUT_MODES},
        )
    name = arguments.strip()
    if name == "auto":
        conversation.state.auto_switch = "on"
        return CommandReply(text="The mode follows your request; set one with /mode NAME.")
    if name not in MODE_NAMES:
        raise WrongUsage("[" + "|".join(ABOUT_MODES) + "]")
    await changes.change_mode(conversation, name, "manual", 1.0)
    return CommandReply(text=f"Mode: **{name}**.", data={"mode": name})


@slash_command("approval", usage="[LEVEL]", more=APPROVAL_HELP, during_turn=True)
async def approval(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or change what runs without asking."""
    policy = conversation.policy.get()
    level = arguments.strip()
    if not level:
        return CommandReply(
            text=f"Approval: **{policy.approval}**. Options: {', '.join(APPROVALS)}.",
            data={"approval": policy.approval, "options": list(APPROVALS), "about": ABOUT_APPROVALS},
        )
    if level not in APPROVALS:
        raise WrongUsage("[" + "|".join(APPROVALS) + "]")
    conversation.state.approval = level
    mode = conversation.prompt.mode
    policy.approval = MODES[mode].approval or level
    if policy.approval != level:
        text = f"Mode **{mode}** keeps the approval at **{policy.approval}**. **{level}** counts after /mode code."
        return CommandReply(text=text, data={"approval": policy.approval})
    warning = " Everything except protected files now runs without asking." if level == "yolo" else ""
    return CommandReply(text=f"Approval: **{level}**.{warning}", data={"approval": level})


@slash_command("status", during_turn=True)
async def show_status(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show model, context, mode and session."""
    now, usage = conversation.state.model, conversation.prompt.measure_usage()
    session_id = conversation.session.id
    rows = [
        ("model", f"{name_model(now.name)} at {now.provider.base_url}"),
        (
            "context",
            f"{usage.used:,} of {conversation.prompt.compute_budget().limit:,} tokens (window {usage.window:,})",
        ),
        ("mode", conversation.prompt.mode),
        ("approval", conversation.policy.get().approval),
        ("session", session_id[:8] if session_id else "not started"),
    ]
    text = "\n".join(f"- {name}: {text}" for name, text in rows)
    return CommandReply(text=text, data={**dict(rows), "session": session_id or "not started"})


@slash_command("permissions", during_turn=True)
async def show_permissions(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show what runs without asking.

    What was allowed with *always* or for this session. `ollm policy check` tells what a call meets."""
    policy = conversation.policy.get()
    grants = [str(grant) for grant in policy.grants.list_grants()]
    listed = "\n".join(f"- `{grant}`" for grant in grants) or "No grants."
    level = f"Approval: **{policy.approval}** (change it with /approval)."
    return CommandReply(
        text=f"{level}\n\n{listed}\n\nSee `ollm policy show` for the rules.",
        data={"approval": policy.approval, "grants": grants},
    )


@slash_command("tools", during_turn=True)
async def tools(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List the tools the model can use.

    *shown* are those in the next request: the mode, the window and the model decide. The others still exist."""
    shown = {schema.name for schema in conversation.prompt.tools}
    specs = conversation.registry.get().list()
    rows = [(spec.name, spec.risk, "yes" if spec.name in shown else "", spec.description) for spec in specs]
    text = render_table(("tool", "risk", "shown", "description"), rows)
    return CommandReply(text=text, data=[{"name": spec.name, "shown": spec.name in shown} for spec in specs])


@slash_command("skills", during_turn=True)
async def show_skills(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List the skills the model can read.

    Skills are folders with a SKILL.md in `.ollm/skills` or `~/.ollm/skills`; the model reads one when it is needed."""
    found = find_skills(conversation.find_directories("skills"), conversation.workspace)
    rows = [(skill.name, skill.description, skill.path) for skill in found]
    none = "No skills. Put one into `.ollm/skills/NAME/SKILL.md` or `~/.ollm/skills`."
    return list_in_reply(("skill", "description", "file"), rows, none, found)


@slash_command("agents", during_turn=True)
async def show_agents(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List the agents you defined.

    Agents are files `.ollm/agents/NAME.md` or `~/.ollm/agents/NAME.md`; write `@agent-NAME` in a message to use
    one."""
    found = await asyncio.to_thread(conversation.tasks.get().list_agents) if conversation.tasks else []
    rows = [
        (f"@agent-{one.name}", one.description, one.mode, ", ".join(one.tools) or "all of its mode")
        if not one.problem
        else (f"@agent-{one.name}", f"cannot be used: {one.problem}", "", "")
        for one in found
    ]
    none = "No agents. Put one into `.ollm/agents/NAME.md` or `~/.ollm/agents`."
    return list_in_reply(("agent", "description", "mode", "tools"), rows, none, found)


@slash_command("trust", usage="[yes]")
async def trust(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Trust this workspace's own settings and instructions.

    Without `yes`: what this folder would bring (settings, hooks, instructions, agents). They count once it is
    trusted, and are asked about again when they change."""
    word = arguments.strip()
    if word not in ("", "yes"):
        raise WrongUsage
    text = conversation.trust(word == "yes")
    return CommandReply(text=text)


@slash_command("help", usage="[NAME]", during_turn=True)
async def show_help(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List the commands."""

    return render_help(conversation.find_directories("commands"), arguments, conversation.mcp)
