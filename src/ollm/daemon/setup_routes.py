"""Routes for the setup: tools, policy, models, settings, and the context of a session."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from litestar import get, post
from litestar.params import Parameter

from ollm.app.models import collect_models
from ollm.app.policy_views import check_call, create_policy_from_file, run_backtest, serialize_policy
from ollm.app.process import ProcessScope
from ollm.app.toolbox import create_tool_registry, serialize_tools
from ollm.app.workspace import WorkspaceScope
from ollm.config.change import format_flow_value, set_setting, unset_setting
from ollm.config.environment import Home
from ollm.config.load import load_settings
from ollm.config.show import find_value, redact_settings
from ollm.daemon.bodies import (
    Accepted,
    BacktestBody,
    BacktestReply,
    CommandLine,
    ModelsReply,
    PolicyCheckBody,
    PolicyReply,
    RevokeBody,
    SettingBody,
    SettingReply,
    SettingsReply,
    ToolLine,
    VerdictReply,
)
from ollm.daemon.devices import Device, require_local
from ollm.daemon.hub import TurnSpeed
from ollm.daemon.routes import Folder
from ollm.daemon.service import DaemonService, parse_workspace
from ollm.domain.context import format_number_ranges
from ollm.domain.errors import BusyError, UsageError
from ollm.domain.messages import Message
from ollm.domain.struct import Data
from ollm.runtime.commands import describe_commands
from ollm.runtime.prompt.breakdown import ContextPart, list_context_parts
from ollm.runtime.prompt.prefix import LedgerEntry
from ollm.store.session_files.store import MessagePage

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

V = TypeVar("V")


def describe_mistake(text: str, file: Path) -> str:
    """Describe a mistake by line and column, without the name of the temporary file."""
    found = re.fullmatch(r"(?::(\d+):(\d+))? ?(.*)", text.removeprefix(str(file)).rstrip("."), re.DOTALL)
    line, column, what = found.groups() if found else (None, None, text)
    if line is None:
        return f"it {what}" if what.startswith("is ") else str(what)
    return f"line {line}, column {column}{'' if what.startswith('is ') else ':'} {what}"


MAX_REQUESTS = 40  # The plot of cache reuse shows the newest requests.
MAX_CHECKPOINT_CHARS = 4_000


class PictureCheckpoint(Data, frozen=True):
    """A record in the context: the messages it stands for, and its text."""

    id: str
    tokens: int
    age: str
    messages: str
    text: str


class PictureMessage(Data, frozen=True):
    """A message in the context, with the numbers of the messages it stands for."""

    role: str
    tokens: int
    numbers: tuple[int, ...]


class ContextPicture(Data, frozen=True):
    """`recallable` are the numbers of messages that left the context: recall fetches any of them."""

    window: int
    limit: int
    available: int
    trigger: int
    used: int
    parts: list[ContextPart]
    messages: list[PictureMessage]
    checkpoints: list[PictureCheckpoint]
    recallable: str
    recallable_count: int
    reuse: list[LedgerEntry]
    turns: list[TurnSpeed]
    live: bool


def _make_picture(prompt: Prompt, messages: Sequence[Message], turns: list[TurnSpeed], *, live: bool) -> ContextPicture:
    budget, context = prompt.compute_budget(), prompt.get_active_context()
    shown = [
        PictureMessage(role=one.role, tokens=prompt.counter.count_message(one), numbers=one.sources)
        for one in context.messages
    ]
    last = messages[-1].id if messages else 0
    known = {number for one in shown for number in one.numbers}
    gone = [number for number in range(1, last + 1) if number not in known]
    return ContextPicture(
        window=budget.window,
        limit=budget.limit,
        available=budget.available,
        trigger=budget.trigger,
        used=prompt.used_tokens,
        parts=list_context_parts(prompt),
        messages=shown,
        checkpoints=[
            PictureCheckpoint(
                id=one.id,
                tokens=one.tokens,
                age=one.age,
                messages=format_number_ranges(one.message_ids),
                text=one.message.content[:MAX_CHECKPOINT_CHARS],
            )
            for one in context.checkpoints
        ],
        recallable=format_number_ranges(gone),
        recallable_count=len(gone),
        reuse=prompt.ledger.entries[-MAX_REQUESTS:],
        turns=turns,
        live=live,
    )


@get("/sessions/{session_id:str}/context")
async def show_context(service: DaemonService, session: str) -> ContextPicture:
    """Show what the model is sent: parts, messages, checkpoints, cuts, cache reuse and speed."""
    service.ensure_known(session)
    held = service.hub.find(session)
    if held is not None:
        newest = service.process.session_files.read(session, MessagePage(None, 1)).session.messages
        return _make_picture(held.conversation.parts.prompt, newest, list(held.speeds.turns), live=True)
    closed = service.open_closed(session)
    stored = closed.process.session_files.read(session).session
    return _make_picture(closed.build_next_prompt(stored), stored.messages, [], live=False)


@get("/tools")
async def list_tools(service: DaemonService, workspace: Folder = "") -> list[ToolLine]:
    """Create the tools of a conversation in this workspace."""
    found = await look(
        service, workspace, lambda scope: serialize_tools(create_tool_registry(scope.path, scope.process).list())
    )
    return msgspec.convert(found, list[ToolLine])


@get("/files")
async def find_files(
    service: DaemonService, workspace: Folder, q: Annotated[str, Parameter(max_length=1000)] = ""
) -> list[str]:
    """Files and directories (with a slash) whose names fit what was typed, the likeliest first."""
    return await look(service, workspace, lambda scope: service.file_names.find(scope, q))


@get("/commands")
async def list_commands(service: DaemonService, workspace: Folder = "") -> list[CommandLine]:
    """The slash commands of a session in this workspace, except those of MCP servers."""
    found = await look(
        service, workspace, lambda scope: describe_commands(scope.process.find_directories("commands", scope.path))
    )
    return [CommandLine(name=name, usage=usage, help=text) for name, usage, text in found]


@get("/policy")
async def show_policy(service: DaemonService, workspace: Folder = "") -> PolicyReply:
    """The rules in the order they are asked, and the grants."""
    found = await look(
        service, workspace, lambda scope: serialize_policy(scope.create_policy(), trusted=scope.process.trusted)
    )
    return msgspec.convert(found, PolicyReply)


@post("/policy/revoke", status_code=200)
async def revoke_grant(service: DaemonService, data: RevokeBody) -> Accepted:
    """Take back a grant, unless another has its number by now."""

    def revoke(scope: WorkspaceScope) -> Accepted:
        grants, number = scope.create_policy().grants, int(data.number)
        if [str(one) for one in grants.list_saved()][number - 1 : number] != [data.grant]:
            raise BusyError("The grants have changed.", action="Read them again.")
        grants.revoke(number)
        return Accepted(accepted=True)

    return await look(service, "", revoke)


@post("/policy/check", status_code=200)
async def check_policy(service: DaemonService, data: PolicyCheckBody) -> VerdictReply:
    """Decide about a call, with the reasons. Nothing runs."""
    found = await look(
        service, data.workspace_path, lambda scope: check_call(scope.create_policy(), data.tool, data.params)
    )
    return msgspec.convert(found, VerdictReply)


@post("/policy/backtest", status_code=200)
async def backtest_policy(service: DaemonService, data: BacktestBody) -> BacktestReply:
    """Count what these rules (YAML, as in a config file) would decide about every recorded call; `problems` says what
    is wrong with them."""

    def test_rules(scope: WorkspaceScope) -> BacktestReply:
        with tempfile.TemporaryDirectory(prefix="ollm-rules-") as folder:
            file = Path(folder) / "rules.yaml"
            file.write_text(data.rules, encoding="utf-8", errors="replace")
            current = proposed = scope.create_policy()
            try:
                proposed = create_policy_from_file(scope, file, builtin=True)
                problems = [text.replace(f"at {file}:", "in line ") for text in proposed.rules.problems]
            except UsageError as error:
                problems = [f"These rules cannot be used: {describe_mistake(error.message, file)}."]
            found = run_backtest(scope.process, current, proposed, problems.append)
        return msgspec.convert({**found, "problems": problems}, BacktestReply)

    return await look(service, data.workspace_path, test_rules)


@get("/models")
async def list_models(service: DaemonService) -> ModelsReply:
    """The models that are installed, those of running servers, those to download, and what was learnt about each."""
    process = service.make_process()
    problems: list[str] = []
    found = await collect_models(process, problems.append)
    return msgspec.convert({**found, "facts": process.model_facts.list_all(), "problems": problems}, ModelsReply)


@get("/settings")
async def show_settings(service: DaemonService, device: Device | None, workspace: Folder = "") -> SettingsReply:
    """The settings in force, secrets hidden, with the origin of each that is set."""

    def describe(scope: WorkspaceScope) -> SettingsReply:
        loaded = scope.process.loaded_settings
        return SettingsReply(
            settings=redact_settings(loaded.settings),
            sources={key: str(place) for key, place in loaded.sources.items()},
            problems=[str(problem) for problem in loaded.problems],
            trusted=scope.process.trusted,
            changeable=f"^({REMOTE_KEYS.pattern})$" if device else "",
        )

    return await look(service, workspace, describe)


REMOTE_KEYS = re.compile(
    r"(compression|loopDetection|snapshots|modes|resume|codeMap)\.\w+|screen\.(keys|bell|plain|theme)", re.ASCII
)
"""Settings that paired devices may change: they give no right, and name no program, file or address."""


@post("/settings", status_code=200)
async def change_setting(service: DaemonService, data: SettingBody, device: Device | None) -> SettingReply:
    """Change a setting in the user's own file, or with `dryRun` show what would change."""
    if not REMOTE_KEYS.fullmatch(data.key):
        require_local(device, f"{data.key} is changed")

    def change(process: ProcessScope) -> SettingReply:
        edit = partial(set_setting, key=data.key, text=data.value or "")
        if data.value is None:
            edit = partial(unset_setting, key=data.key)
        before = describe_setting(process.home, data.key)
        with tempfile.TemporaryDirectory(prefix="ollm-settings-") as folder:
            copy = Home(Path(folder))
            if process.home.config.exists():
                copy.config.write_bytes(process.home.config.read_bytes())
            edit(copy)
            after = describe_setting(copy, data.key)
        if not data.dry_run:
            edit(process.home)
        return SettingReply(diff=f"-{before}\n+{after}\n" if before != after else "")

    return await service.run_apart(change)


def describe_setting(home: Home, key: str) -> str:
    """Describe a setting as the user's own file sets it, or its default."""
    return f"{key}: {format_flow_value(find_value(redact_settings(load_settings(home, {}).settings), key))}"


async def look(service: DaemonService, workspace: str, view: Callable[[WorkspaceScope], V]) -> V:
    """Apply `view` to a workspace; without one, to what applies everywhere."""
    place = parse_workspace(workspace) if workspace else service.process.user_home
    return await service.run_apart(lambda process: view(WorkspaceScope(process, place)), workspace=place)
