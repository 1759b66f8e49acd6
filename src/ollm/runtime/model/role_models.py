"""Models for work besides the answers to the user (`roles` in the settings), each chosen when it is first used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from ollm.domain.clock import monotonic
from ollm.domain.errors import ModelError, OllmError
from ollm.domain.events import Event, Notice
from ollm.domain.messages import JsonObject, PromptMessage
from ollm.domain.text import format_seconds
from ollm.runtime.model.model import Model, iterate_text

if TYPE_CHECKING:
    from ollm.config.settings import ProviderSettings
    from ollm.domain.model_facts import ModelFacts
    from ollm.runtime.base import WriteFacts
    from ollm.services.message_search.embeddings import SessionEmbedder

CONNECT_SECONDS = 10.0
RETRY_SECONDS = 60.0  # A server that did not answer is tried again after this time.
log = logging.getLogger("ollm.roles")


class RoleModels:
    """Models by role. If the server of a role does not answer, the main model does its work; that is said once.

    `servers` has the roles that are set. `save` takes the key of a model and the facts that changed."""

    def __init__(
        self,
        servers: Mapping[str, ProviderSettings],
        get_main: Callable[[], Model],
        choose: Callable[[ProviderSettings], Awaitable[Model]],
        save: WriteFacts,
        emit: Callable[[Event], None],
        embedder: SessionEmbedder | None = None,
    ) -> None:
        self._servers = servers
        self._get_main = get_main
        self._choose = choose
        self._save = save
        self._emit = emit
        self.embedder = embedder
        self._models: dict[ProviderSettings, Model] = {}
        self._problems: dict[ProviderSettings, tuple[str, float]] = {}  # The time is that of the next try.
        self._said: set[ProviderSettings] = set()
        self._choosing = asyncio.Lock()
        self._seconds: dict[str, float] = {}  # The time of requests is added up by role.

    def __contains__(self, role: str) -> bool:
        return role in self._servers

    async def find(self, role: str, *, quietly: bool = False) -> Model | None:
        """Find the model of a role. Return None if main does its work. A failure is said in a turn, not `quietly`."""
        server = self._servers.get(role)
        if server is None:
            return None
        async with self._choosing:
            if self._problems.get(server, ("", 0.0))[1] <= monotonic():
                await self._connect(server)
        if server not in self._problems:
            return self._models[server]
        if not quietly and server not in self._said:
            self._said.add(server)
            text = f"roles.{role}: {self._problems[server][0]} Using {self._get_main().name} instead."
            self._emit(Notice(level="warning", text=text))
        return None

    async def _connect(self, server: ProviderSettings) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if server not in self._models:
                    self._models[server] = await self._choose(server)
                with suppress(ModelError):  # A server that reports an error also answers.
                    await self._models[server].provider.models()
        except (OllmError, TimeoutError) as error:
            self._note_problem(server, error)
        else:
            self._problems.pop(server, None)

    def _note_problem(self, server: ProviderSettings, error: OllmError | TimeoutError) -> None:
        text = error.message if isinstance(error, OllmError) else f"{server.base_url} did not answer in time."
        log.warning(text, extra={"operation": "roles"})
        self._problems[server] = text, monotonic() + RETRY_SECONDS

    def report_failure(self, role: str, model: Model, problem: str) -> bool:
        """Let main do the work of a role whose model failed. Returns False if it was not the role's model."""
        server = self._servers.get(role)
        if server is None or self._models.get(server) is not model:
            return False
        self._note_problem(server, ModelError(problem))
        return True

    async def summarise(self, messages: tuple[PromptMessage, ...], max_tokens: int) -> AsyncIterator[str]:
        """Yield the text of a summary, by main if the role's model fails before it begins."""
        if model := await self.find("summary"):
            begun = False
            try:
                async for text in self._measure("summary", model, model.summarise(messages, max_tokens)):
                    begun = True
                    yield text
            except OllmError as error:
                if begun:
                    raise
                self._note_problem(self._servers["summary"], error)
                await self.find("summary")
            else:
                return
        main = self._get_main()
        async for text in self._measure("summary", main, main.summarise(messages, max_tokens)):
            yield text

    async def ask(
        self,
        role: str,
        model: Model,
        messages: tuple[PromptMessage, ...],
        tokens: int,
        schema: JsonObject | None = None,
    ) -> str:
        """Return the answer of a role's model, bound by a schema if one is given."""
        pieces = iterate_text(model.stream(messages, (), tokens, schema=schema))
        return "".join([text async for text in self._measure(role, model, pieces)])

    async def _measure(self, role: str, model: Model, texts: AsyncIterator[str]) -> AsyncIterator[str]:
        begun, before = monotonic(), model.facts
        try:
            async for text in texts:
                yield text
        finally:
            self.record(role, monotonic() - begun, model, before)

    def record(self, role: str, seconds: float, model: Model, before: ModelFacts) -> None:
        """Record the time of requests to a role's model, and save what was learnt about it."""
        self._seconds[role] = self._seconds.get(role, 0.0) + seconds
        if changes := model.facts.list_changes(before):
            self._save(model.facts.key, changes, {})

    def describe(self, main_seconds: float) -> list[tuple[str, str, str, str]]:
        """Describe each role: its name, model, server, and the time its requests took."""
        main = self._get_main()
        rows = [("main", main.name, main.provider.base_url, format_seconds(main_seconds))]
        for role, server in self._servers.items():
            model = self._models.get(server)
            name = model.name if model else server.model or "its first"
            place = model.provider.base_url if model else server.base_url or server.type or main.provider.base_url
            down = " (no answer: main does it)" if server in self._problems else ""
            rows.append((role, name, f"{place}{down}", format_seconds(self._seconds.get(role, 0.0))))
        if self.embedder:
            last = self.embedder.server
            rows.append(("embedding", last.model, last.url, format_seconds(last.seconds)))
        return rows

    async def close(self) -> None:
        for model in self._models.values():
            await model.provider.close()
