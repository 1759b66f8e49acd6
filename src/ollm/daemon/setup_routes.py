"""Routes to what is set up: tools, policy, models, settings, and a picture of a session's window."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from litestar import get, post
from litestar.params import Parameter

from ollm.app import ClosedSession, ProcessScope, WorkspaceScope
from ollm.app.run_tool import create_tool_registry, serialize_tools
from ollm.daemon.bodies import BacktestBody, PolicyCheckBody
from ollm.daemon.hub import TurnSpeed
from ollm.daemon.service import DaemonService, parse_id, parse_workspace
from ollm.domain.context import format_number_ranges
from ollm.domain.errors import UsageError
from ollm.domain.struct import Data
from ollm.runtime.prompt.breakdown import ContextPart, list_context_parts
from ollm.services.prefix_ledger import LedgerEntry

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

V = TypeVar("V")


class SetupViews:
    """Each is of a workspace; none for what counts everywhere."""

    def __init__(self, service: DaemonService) -> None:
        self._service = service

    async def _view(self, workspace: str, look: Callable[[ProcessScope, Path], V]) -> V:
        place = parse_workspace(workspace) if workspace else self._service.process.user_home

        def run() -> V:
            process = self._service.make_process(place)
            try:
                return look(process, place)
            finally:
                process.close()

        return await asyncio.to_thread(run)

    async def list_tools(self, workspace: str) -> list[dict[str, Any]]:
        def view(process: ProcessScope, place: Path) -> list[dict[str, Any]]:
            return serialize_tools(create_tool_registry(place, process).list())

        return await self._view(workspace, view)

    async def show_policy(self, workspace: str) -> dict[str, Any]:
        from ollm.app.policy_views import serialize_policy

        return await self._view(
            workspace, lambda process, place: serialize_policy(WorkspaceScope(process, place).create_policy())
        )

    async def check_policy(self, workspace: str, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        from ollm.app.policy_views import check_call

        return await self._view(
            workspace, lambda process, place: check_call(WorkspaceScope(process, place).create_policy(), tool, params)
        )

    async def backtest_policy(self, workspace: str, rules: str) -> dict[str, Any]:
        """Count what these rules would decide about every recorded call."""
        from ollm.app.policy_views import run_backtest

        def view(process: ProcessScope, place: Path) -> dict[str, Any]:
            scope = WorkspaceScope(process, place)
            problems: list[str] = []
            with tempfile.TemporaryDirectory(prefix="ollm-rules-") as folder:
                file = Path(folder) / "rules.yaml"
                file.write_text(rules, encoding="utf-8", errors="replace")
                try:
                    proposed = scope.create_policy_from_file(file, builtin=True)
                except UsageError as error:
                    raise UsageError(
                        f"These rules cannot be used: {describe_mistake(error.message, file)}.",
                        action="Write them as in a config file.",
                    ) from error
                problems += [text.replace(f"at {file}:", "in line ") for text in proposed.rules.problems]
                found = run_backtest(process, scope.create_policy(), proposed, problems.append)
            return {**found, "problems": problems}

        return await self._view(workspace, view)

    async def list_models(self) -> dict[str, Any]:
        """Those there are, and what was learnt about each."""
        from ollm.app.models import collect_models

        process = self._service.make_process()
        problems: list[str] = []
        found = await collect_models(process, problems.append)
        facts = [msgspec.to_builtins(one) for one in process.model_facts.list_all()]
        return {**found, "facts": facts, "problems": problems}

    async def show_settings(self, workspace: str) -> dict[str, Any]:
        """The settings in force with secrets hidden, where each that is set comes from, and what is wrong with them."""
        from ollm.config.show import redact_settings

        def view(process: ProcessScope, _: Path) -> dict[str, Any]:
            loaded = process.loaded_settings
            return {
                "settings": redact_settings(loaded.settings),
                "sources": {key: str(place) for key, place in loaded.sources.items()},
                "problems": [str(problem) for problem in loaded.problems],
                "trusted": process.trusted,
            }

        return await self._view(workspace, view)


def describe_mistake(text: str, file: Path) -> str:
    """Describe a mistake by line and column, without the name of the temporary file."""
    found = re.fullmatch(r"(?::(\d+):(\d+))? ?(.*)", text.removeprefix(str(file)).rstrip("."), re.DOTALL)
    line, column, what = found.groups() if found else (None, None, text)
    if line is None:
        return f"it {what}" if what.startswith("is ") else str(what)
    return f"line {line}, column {column}{'' if what.startswith('is ') else ':'} {what}"


MAX_REQUESTS = 40  # of the newest, in the plot of what was reused
MAX_CHECKPOINT_CHARS = 4_000


class PictureCheckpoint(Data, frozen=True):
    """A record in the context: which messages it stands for, and what it says of them."""

    id: str
    tokens: int
    age: str
    messages: str
    text: str


class PictureMessage(Data, frozen=True):
    """A message in the context, by the numbers of what it stands for."""

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


async def draw_context(service: DaemonService, session_id: str) -> ContextPicture:
    """Of a session that is open here as it is, of another as it would be resumed."""
    held = service.hub.find(session_id)
    if held is not None:
        last = _find_last_number(service, session_id)
        return _make_picture(held.conversation.parts.prompt, last, list(held.speeds.turns), live=True)
    workspace = service.find_workspace(session_id) or service.process.user_home
    process = service.make_process(workspace)
    session = process.session_files.read(session_id).session
    prompt = await ClosedSession(process, workspace).build_prompt(session)
    return _make_picture(prompt, session.messages[-1].id if session.messages else 0, [], live=False)


def _find_last_number(service: DaemonService, session_id: str) -> int:
    from ollm.store.session_files import MessagePage

    newest = service.process.session_files.read(session_id, MessagePage(None, 1)).session.messages
    return newest[-1].id if newest else 0


def _make_picture(prompt: Prompt, last: int, turns: list[TurnSpeed], *, live: bool) -> ContextPicture:
    budget, context = prompt.compute_budget(), prompt.get_active_context()
    messages = [
        PictureMessage(role=one.role, tokens=prompt.counter.count_message(one), numbers=one.sources)
        for one in context.messages
    ]
    shown = {number for one in messages for number in one.numbers}
    gone = [number for number in range(1, last + 1) if number not in shown]
    return ContextPicture(
        window=budget.window,
        limit=budget.limit,
        available=budget.available,
        trigger=budget.trigger,
        used=prompt.used_tokens,
        parts=list_context_parts(prompt),
        messages=messages,
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


Folder = Annotated[str, Parameter(max_length=4096)]


@get("/sessions/{session_id:str}/context")
async def show_context(service: DaemonService, session_id: str) -> ContextPicture:
    """Show what the model is sent: parts, messages, checkpoints, cuts, cache reuse and speed."""
    found = parse_id(session_id)
    service.ensure_known(found)
    return await draw_context(service, found)


@get("/tools")
async def list_tools(service: DaemonService, workspace: Folder = "") -> list[dict[str, Any]]:
    """The tools a conversation in this workspace would have."""
    return await SetupViews(service).list_tools(workspace)


@get("/policy")
async def show_policy(service: DaemonService, workspace: Folder = "") -> dict[str, Any]:
    """The rules in the order they are asked, and the grants."""
    return await SetupViews(service).show_policy(workspace)


@post("/policy/check", status_code=200)
async def check_policy(service: DaemonService, data: PolicyCheckBody) -> dict[str, Any]:
    """True if a call would be allowed, and why. Nothing runs."""
    return await SetupViews(service).check_policy(data.workspace_path, data.tool, data.params)


@post("/policy/backtest", status_code=200)
async def backtest_policy(service: DaemonService, data: BacktestBody) -> dict[str, Any]:
    """Count what these rules (YAML, as in a config file) would decide about every recorded call."""
    return await SetupViews(service).backtest_policy(data.workspace_path, data.rules)


@get("/models")
async def list_models(service: DaemonService) -> dict[str, Any]:
    """The models that are installed, those of running servers, those to download, and what was learnt about each."""
    return await SetupViews(service).list_models()


@get("/settings")
async def show_settings(service: DaemonService, workspace: Folder = "") -> dict[str, Any]:
    """The settings in force, secrets hidden, with the origin of each that is set."""
    return await SetupViews(service).show_settings(workspace)


SETUP_HANDLERS = [show_context, list_tools, show_policy, check_policy, backtest_policy, list_models, show_settings]
