"""Commands about the session: its history, other sessions, continuing, quitting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import format_age
from ollm.domain.errors import UsageError
from ollm.domain.messages import TextPart, put_in_fence
from ollm.domain.session import arrange_forks
from ollm.domain.text import fold_lines, format_count, shorten_ids
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import (
    WrongUsage,
    fence_text,
    list_in_reply,
    parse_number,
    slash_command,
)

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts

DEFAULT_PAGE_MESSAGES = 200
MAX_PAGE_MESSAGES = 10**9
MAX_FOLDED_LINES = 12
INIT_PROMPT = (
    "Write AGENTS.md for this project. Look at its files, build and test commands and conventions first; then write"
    " AGENTS.md in its root: what a coding agent must know to work here, in at most 40 lines. If there is one, improve"
    " it. Use only what you saw in the files."
)


@slash_command("history", usage="[N | all]", during_turn=True)
async def history(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show the conversation.

    Also what the model no longer sees. `N`: the last N messages; `all`: as many as there are. Both show every word;
    without them long texts are folded."""
    word = arguments.strip()
    limit = MAX_PAGE_MESSAGES if word == "all" else parse_number(word) if word else DEFAULT_PAGE_MESSAGES
    if not limit:
        raise WrongUsage
    page = conversation.session.load_page(None, limit)
    lines = [
        f"**#{message['id']} {message['role']}** {format_age(message['timestamp'])}\n\n{text}"
        for message in page
        if (text := format_message(message, folds=not word)) or message["role"] != "tool"
    ]
    if page and page[0]["id"] > 1:
        lines.insert(0, f"{page[0]['id'] - 1} earlier messages: `/history all`.")
    return CommandReply(text="\n\n".join(lines) or "No messages yet.", data=page)


def format_message(message: dict[str, Any], *, folds: bool) -> str:
    """A message with its calls; results are beside the call that brought them."""
    fold = partial(fold_text, number=message["id"]) if folds else str
    if message["role"] == "user":
        return "\n\n".join(fence_text(fold(part["text"])) for part in message["parts"] if part["type"] == "text")
    lines = [format_part(part) for part in message["parts"] if part["type"] in ("text", "thinking")]
    if message["role"] == "assistant":
        lines += [format_call(call, fold) for call in message["toolCalls"]]
    return "\n\n".join(lines)


def fold_text(text: str, number: int) -> str:
    return "\n".join(fold_lines(text.split("\n"), MAX_FOLDED_LINES, 0, f": /expand {number}"))


def format_call(call: dict[str, Any], fold: Callable[[str], str]) -> str:
    result = call.get("result") or {}
    brought = result.get("fullOutput") or result.get("llmContent") or ""
    when, arguments = format_age(call["timestamp"]), msgspec.json.encode(call["args"]).decode()
    head = f"`{call['name']}` {arguments} · {call['status']} · {when}"
    return f"{head}\n\n{fence_text(fold(brought))}" if brought else head


def format_part(part: dict[str, str]) -> str:
    """Thinking is told apart from what was said."""
    return part["text"] if part["type"] == "text" else "> " + part["text"].replace("\n", "\n> ")


@slash_command("export", usage="FILE", during_turn=True)
async def export(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Export the session to a file (.json, .md or .html).

    The ending decides the form. A file that exists is not replaced; paths start in the workspace."""
    if not arguments.strip():
        raise WrongUsage
    target = conversation.workspace / Path(arguments.strip()).expanduser()
    conversation.export(conversation.session.require_id(), target)
    return CommandReply(text=f"Written to {target}.", data={"file": str(target)})


@slash_command("sessions", usage="[ID]")
async def sessions(conversation: ConversationParts, arguments: str) -> CommandReply:
    """List sessions, or open one.

    Those of this workspace. As many characters of an id as tell it from the others are enough."""
    known = conversation.list_sessions()
    wanted = arguments.strip()
    if wanted:
        fits = [record for record in known if record.session_id.startswith(wanted)]
        if len(fits) != 1:
            raise UsageError(f"{len(fits)} sessions start with {wanted!r}.", action="List them with /sessions.")
        return CommandReply(follow_up="open-session", argument=fits[0].session_id)
    short, known = shorten_ids(record.session_id for record in known), arrange_forks(known)
    rows = [(short[record.session_id], record.title, record.model, record.status) for record in known]
    none, found = "No sessions in this workspace yet.", [record.session_id for record in known]
    return list_in_reply(("session", "title", "model", ""), rows, none, found)


resume_command = msgspec.structs.replace(sessions, name="resume", help="Resume another session.")


@slash_command("fork", usage="[N]")
async def fork(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Continue in a copy of this session up to message N.

    Without N, all of it; `/history` shows the numbers. This session stays as it is. Files stay as they are now; a
    rewind in the fork reaches only its own turns."""
    number = parse_number(arguments.strip())
    if arguments.strip() and not number:
        raise WrongUsage
    made = await conversation.session.service.fork_session(conversation.session.require_id(), number)
    data = msgspec.to_builtins(made)
    return CommandReply(text=made.text, data=data, follow_up="open-session", argument=made.session_id)


@slash_command("new")
async def new(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Start a new session.

    The session so far is saved; `/resume` opens it again. Files and the model stay as they are."""
    return CommandReply(text="New session.", follow_up="new-session", argument=conversation.state.chosen_model)


clear_command = msgspec.structs.replace(new, name="clear", help="Start a new session with an empty context.")


@slash_command("retry")
async def retry(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Send your last message again.

    For a server that failed or an answer you do not like. A message without an answer reaches the model once."""
    if not (text := _find_newest_text(conversation, "user")):
        raise UsageError("There is no message to send again.", action="Type one.")
    return CommandReply(follow_up="send", argument=text)


def _find_newest_text(conversation: ConversationParts, role: str) -> str:
    page = reversed(conversation.session.load_page(None, DEFAULT_PAGE_MESSAGES))
    return next((text for one in page if one["role"] == role and (text := _read_text(one)).strip()), "")


def _read_text(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


@slash_command("continue", usage="[TEXT]")
async def continue_session(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Continue after a stopped loop or a cut answer.

    After a loop the model is told what it repeated. Words behind it are sent along."""
    last = conversation.session.load_page(None, 1)
    if last and last[0]["role"] == "user" and not arguments.strip():
        return CommandReply(follow_up="send", argument=_read_text(last[0]))
    pattern = conversation.state.last_loop
    text = f"Go on, but not like this again: {pattern}" if pattern else "Go on."
    return CommandReply(follow_up="send", argument=f"{text} {arguments}".strip())


@slash_command("copy", during_turn=True)
async def copy(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Copy the last answer to the clipboard.

    The text of the last answer, through the terminal, also over SSH where it allows that."""
    if not (text := _find_newest_text(conversation, "assistant")):
        raise UsageError("There is no answer to copy yet.", action="Send a message first.")
    return CommandReply(text=text)


@slash_command("run", usage="[N]")
async def run(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Run a command that the answer only showed.

    The last block of `bash` or `sh` since your message, or the Nth. Policy applies as to a call of the model, which
    reads the output with your next message."""
    from ollm.runtime.small_models.blocks import SHELL_LABELS, clean_command, read_blocks

    page = conversation.session.load_page(None, DEFAULT_PAGE_MESSAGES)
    answers = [*takewhile(lambda message: message["role"] != "user", reversed(page))][::-1]
    texts = (_read_text(message) for message in answers if message["role"] == "assistant")
    blocks = (block for text in texts for block in read_blocks(text) if block.name.lower() in SHELL_LABELS)
    shown = list(dict.fromkeys(clean_command(block.body) for block in blocks))
    number = parse_number(arguments.strip() or str(len(shown))) or 0
    if not 0 < number <= len(shown):
        raise UsageError(f"The last answer shows {format_count(len(shown), 'command')}.", action="/run N runs one.")
    (record,) = await conversation.dispatch.get().run_unrecorded("shell", {"command": shown[number - 1]})
    output = record.result.llm_content if record.result else record.error.message if record.error else ""
    told = f"The user ran a command that you showed:\n{put_in_fence(shown[number - 1])}\n{put_in_fence(output)}"
    message = await conversation.session.record_message("system", (TextPart(told),))
    conversation.prompt.add_message(message, {})
    return CommandReply(text=f"{fence_text(shown[number - 1], 'sh')}\n{fence_text(output)}")


@slash_command("init")
async def init(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Write AGENTS.md: what an agent must know about this project.

    The model looks at the project and writes the file, asked about like any edit. Words behind it go along."""
    return CommandReply(follow_up="send", argument=f"{INIT_PROMPT} {arguments}".strip())


@slash_command("rename", usage="TITLE")
async def rename(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Rename this session.

    Lists, the status line and the title of the terminal show the new name."""
    if not (title := " ".join(arguments.split())):
        raise WrongUsage
    await conversation.session.rename(title)
    return CommandReply(text=f"Renamed to {title}.", data={"title": title})


@slash_command("cost", during_turn=True)
async def cost(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show the tokens, and the cost, of this session since you opened it.

    `provider.price` sets what a token costs; without it only tokens are shown. With `roles`, also the time by role."""
    used, price = conversation.state.usage, conversation.state.cost
    read = f"{used.prompt_tokens:,} tokens read ({used.reused_tokens:,} from the cache)"
    text = f"{read}, {used.completion_tokens:,} written." + (f" Cost: {price:.4f}." if price else "")
    data = {**msgspec.to_builtins(used), "cost": price}
    if conversation.roles:
        times = {row[0]: row[-1] for row in conversation.roles.get().describe(conversation.state.seconds)}
        text += f" Time of requests: {', '.join(f'{role} {time}' for role, time in times.items())}."
    return CommandReply(text=text, data=data)


usage_command = msgspec.structs.replace(cost, name="usage")


@slash_command("config", usage="[get KEY | set KEY VALUE | reload]", during_turn=("", "get", "set", "check"))
async def config(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Show or change settings.

    As `ollm config` in your shell: without words those that are set, `get KEY`, `set KEY VALUE`, `check`. `reload`
    applies permission rules that were changed since this conversation began, also those that allow more."""
    if arguments == "reload":
        changed = conversation.policy.get().adopt_newer_rules()
        conversation.state.has_rules = bool(conversation.policy.get().rules.rules)
        return CommandReply(text="The changed rules apply now." if changed else "The permission rules are unchanged.")
    return CommandReply(text="Run `ollm config` in your shell.")


@slash_command("doctor", during_turn=True)
async def doctor(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Check your setup and suggest fixes.

    As `ollm doctor` in your shell."""
    return CommandReply(text="Run `ollm doctor` in your shell.")


@slash_command("theme", usage="[auto | dark | light | plain]", during_turn=True)
async def theme(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Choose the colours of the screen.

    The list shows each with a change and code. The choice is saved as `screen.theme`."""
    return CommandReply(text="Run `ollm config set screen.theme NAME` or `ollm config set screen.keys vi`.")


vim_command = msgspec.structs.replace(
    theme,
    name="vim",
    usage="",
    help="Switch the keys of the input line between vi and emacs.",
    more="The choice is saved as `screen.keys`.",
)


@slash_command("add-dir", usage="DIRECTORY")
async def add_directory(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Let tools use another directory in this chat.

    They read and write there as in the workspace, under the same rules. `tools.allowedRoots` adds one to every chat."""
    folder = (conversation.workspace / Path(arguments.strip()).expanduser()).resolve()
    if not arguments.strip() or not folder.is_dir():
        raise UsageError("Name a directory that exists, as in `/add-dir ../library`.")
    conversation.add_root(folder)
    return CommandReply(text=f"Tools may use {folder} in this chat.")


@slash_command("exit", during_turn=True)
async def exit_chat(conversation: ConversationParts, arguments: str) -> CommandReply:
    """Quit; the session is saved."""
    return CommandReply(follow_up="exit")


quit_command = msgspec.structs.replace(exit_chat, name="quit", help="Quit; the session is saved.")
