"""The hooks of one conversation, put together from its settings."""

import json
from contextlib import AsyncExitStack

import pytest

from ollm.app.hook_setup import add_hook_context, find_session_file
from ollm.app.storage import Storage
from ollm.app.toolbox import Toolbox
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


@pytest.fixture
def storage(place: AppPlace) -> Storage:
    return Storage(place.scope(), ConversationOptions(workspace=place.workspace))


async def test_hooks_are_read_and_mistakes_told(place: AppPlace) -> None:
    place.configure(hooks={"before-tool": ["true"], "nonsense": ["true"]})
    storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace))
    async with AsyncExitStack() as stack:
        assert Toolbox(storage, stack).hooks is not None
        assert len(storage.notices) == 1
        assert "hooks.nonsense: unknown event" in storage.notices[0]


async def test_a_hook_runs_in_the_workspace_and_its_words_reach_the_prompt(place: AppPlace) -> None:
    said = json.dumps({"context": [{"key": "k", "content": "Mind the gap."}]})
    place.configure(hooks={"before-turn": [f"pwd > seen; echo '{said}'"]}, sandbox={"mode": "off"})
    storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace))
    async with AsyncExitStack() as stack:
        hooks = Toolbox(storage, stack).hooks
        assert hooks is not None
        await hooks.before_turn("hello")

    assert (place.workspace / "seen").read_text().strip() == str(place.workspace)
    assert [entry.content for entry in storage.entries.get_context()] == ["Mind the gap."]


async def test_a_hook_is_told_where_the_session_is_recorded(place: AppPlace) -> None:
    async with ScriptedServer([]) as server:
        place.configure(
            provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"},
            sessions={"dataDir": "~/.ollm/elsewhere"},
        )
        storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace))
        assert find_session_file(storage) == ""
        model = await storage.process.choose_model()
        session = await storage.session.create(model)
        await model.provider.close()
        assert find_session_file(storage) == str(place.home / "elsewhere" / f"{session}.json")
        await storage.session.close()


def test_a_hooks_words_for_the_model_become_an_entry(storage: Storage) -> None:
    add_hook_context(storage.entries, {"key": "k", "content": "Mind the gap.", "priority": 70, "volatile": True})
    add_hook_context(storage.entries, {"key": "", "content": ""})

    (entry,) = storage.entries.get_context()
    assert (entry.key, entry.content, entry.priority, entry.source) == ("k", "Mind the gap.", 70, "hook")
    assert storage.entries.render_volatile_entries()
