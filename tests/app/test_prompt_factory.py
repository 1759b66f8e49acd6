"""What the prompt of one conversation is made of."""

import pytest

from ollm.app.prompt_factory import PromptFactory
from ollm.app.storage import Storage
from ollm.domain.context import CompressionRecord
from ollm.domain.lazy import Lazy
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


class NotedHooks:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, int]]] = []

    async def run_event(self, event: str, data: dict[str, int]) -> None:
        self.events.append((event, data))


def make_factory(place: AppPlace, hooks: NotedHooks | None = None) -> PromptFactory:
    storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace, mode="plan"))
    return PromptFactory(storage, Lazy(lambda: hooks))  # type: ignore[arg-type,return-value]


def list_entries(factory: PromptFactory) -> str:
    return "\n".join(entry.content for entry in factory.storage.entries.get_context())


def test_instructions_of_the_project_count_once_it_is_trusted(place: AppPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.workspace)
    (place.workspace / "AGENTS.md").write_text("Always be kind.")
    factory = make_factory(place)
    factory.add_project_instructions()
    assert "Always be kind." not in list_entries(factory)
    place.trust()
    factory = make_factory(place)
    factory.add_project_instructions()
    assert "Always be kind." in list_entries(factory)


@pytest.mark.parametrize(
    ("tokens", "window", "trusted", "there"),
    [(400, 32_768, True, True), (0, 32_768, True, False), (400, 15, True, False), (400, 32_768, False, False)],
)
async def test_a_map_of_the_project_is_made_where_it_is_wanted(
    place: AppPlace, tokens: int, window: int, trusted: bool, there: bool
) -> None:
    (place.workspace / "special_name.py").write_text("x = 1\n")
    place.configure(fileDiscovery={"projectMap": tokens})
    if trusted:
        place.trust()
    factory = make_factory(place)
    await factory.add_project_map(window)

    assert ("special_name.py" in list_entries(factory)) is there
    factory.scope.close()


async def test_a_prompt_is_made_for_the_window_and_mode(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=16_384) as server:
        place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"})
        factory = make_factory(place)
        model = await factory.process.choose_model()
        prompt = factory.build_prompt(model)
        await model.provider.close()

    assert prompt.mode == "plan"
    assert prompt.compute_budget().window == 16_384
    assert factory.build_compactor(prompt) is not None


async def test_hooks_hear_of_compression_before_and_after(place: AppPlace) -> None:
    hooks = NotedHooks()
    async with ScriptedServer([], kind="llama.cpp") as server:
        place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"})
        factory = make_factory(place, hooks)
        model = await factory.process.choose_model()
        await factory.storage.session.create(model)
        await model.provider.close()
    await factory.announce_compression()
    record = CompressionRecord(
        timestamp="",
        trigger="auto",
        strategy="hybrid",
        original_token_count=900,
        compressed_token_count=300,
        message_ids=(),
        checkpoint=None,
    )
    await factory.record_compression(record)
    kept = factory.storage.session.load().metadata.compression_history
    await factory.storage.session.close()

    assert hooks.events == [("before-compression", {}), ("after-compression", {"before": 900, "after": 300})]
    assert len(kept) == 1


async def test_without_hooks_nobody_is_told(place: AppPlace) -> None:
    await make_factory(place).announce_compression()
