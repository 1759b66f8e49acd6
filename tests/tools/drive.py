"""Drives a tool as a turn does: through dispatch, with the real policy and a person who says yes."""

from pathlib import Path
from typing import Any

from ollm.config.settings import CodeMapSettings, FileDiscoverySettings, ToolSettings
from ollm.domain.events import Event
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Todo, ToolCallRecord
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import RuleSet
from ollm.runtime.calls.dispatch import CallServices, Dispatch
from ollm.services.code_map.service import CodeMapService
from ollm.services.edit_ledger import EditLedger
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.services.token_counting import TokenCounter
from ollm.store.database import GLOBAL_MIGRATIONS, WORKSPACE_MIGRATIONS, Database
from ollm.store.notes import NoteStore
from ollm.system.paths import Boundary
from ollm.tools.catalogue import build_registry
from ollm.tools.framework.base import ToolContext
from ollm.tools.web_search import WebSearchNeeds


class Person:
    """Answers every question the same way, and remembers them."""

    def __init__(self, *, approves: bool = True) -> None:
        self.approves = approves
        self.asked: list[ConfirmationDetails] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(details)
        return ConfirmationAnswer(approved=self.approves)


class Services:
    """What the tools need. A test may put another in the place of each."""

    def __init__(self, workspace: Path) -> None:
        self.edits = EditLedger()
        self.discovery = FileDiscoveryService(FileDiscoverySettings(), workspace / "home")
        self.code_map = CodeMapService(CodeMapSettings(), workspace.parent / "cache")
        self.count_tokens = TokenCounter().count_text
        self.result_tokens: int | None = None
        self.notes = NoteStore(lambda: Database(workspace / ".ollm" / "memory.db", WORKSPACE_MIGRATIONS))
        self.global_notes = NoteStore(lambda: Database(workspace.parent / "home" / "global.db", GLOBAL_MIGRATIONS))
        self.search = WebSearchNeeds(key="key-1")
        self.told: list[tuple[Todo, ...]] = []
        self.todos_changed = self.told.append

    def get_result_tokens(self) -> int | None:
        return self.result_tokens


class Driver:
    """A workspace with our tools in it. `await driver("read_file", path="a")` is one call and its record."""

    def __init__(
        self,
        workspace: Path,
        *,
        settings: ToolSettings | None = None,
        vision: bool = False,
        home: Path | None = None,
    ) -> None:
        self.workspace = workspace
        self.boundary = Boundary.around(workspace, user_home=home, ollm_home=home and home / ".ollm")
        self.services: Any = Services(workspace)
        self.registry = build_registry(self.services)
        self.person = Person()
        self.events: list[Event] = []

        async def sees() -> bool:
            return vision

        context = ToolContext(boundary=self.boundary, settings=settings or ToolSettings(), sees=sees)
        policy = PolicyEngine(RuleSet(), self.boundary)
        services = CallServices(
            registry=self.registry, policy=policy, context=context, emit=self.events.append, asker=self.person
        )
        self.dispatch = Dispatch(services)
        self._count = 0

    async def __call__(self, tool: str, **arguments: Any) -> ToolCallRecord:
        self._count += 1
        (record,) = await self.dispatch.run([ToolCall(id=f"c{self._count}", name=tool, arguments=arguments)], 1)
        return record


def content(record: ToolCallRecord) -> str:
    assert record.error is None, record.error
    assert record.result is not None
    return record.result.llm_content


def error(record: ToolCallRecord) -> tuple[str, str]:
    assert record.error is not None, record.result
    return record.error.type, record.error.message
