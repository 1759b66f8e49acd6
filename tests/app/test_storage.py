"""What one conversation keeps, opened when first asked for."""

from typing import Any

import pytest

from ollm.app.storage import Storage
from ollm.domain.events import AnyEvent, Notice
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


def open_storage(place: AppPlace, **options: Any) -> Storage:
    return Storage(place.scope(), ConversationOptions(workspace=place.workspace, **options))


def test_nothing_is_opened_before_it_is_asked_for(place: AppPlace) -> None:
    storage = open_storage(place)

    assert storage.notices == []
    assert not place.home.exists()
    assert not (place.workspace / ".ollm").exists()


def test_the_mode_is_as_asked_as_it_was_or_as_set(place: AppPlace) -> None:
    place.configure(modes={"default": "debug"})
    storage = open_storage(place)
    assert storage.mode == "debug"
    storage.resumed_mode = "plan"
    assert storage.mode == "plan"
    chosen = open_storage(place, mode="code")
    chosen.resumed_mode = "plan"
    assert chosen.mode == "code"


@pytest.mark.parametrize(("one_shot", "origin"), [(True, "one-shot"), (False, None)])
async def test_a_session_knows_where_it_comes_from(place: AppPlace, one_shot: bool, origin: str | None) -> None:
    storage = open_storage(place, one_shot=one_shot)
    assert await storage.load_archive(None) is None
    async with ScriptedServer([], kind="llama.cpp") as server:
        place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"})
        model = await place.process().choose_model()
        await storage.session.create(model)
        await model.provider.close()
    loaded = await storage.load_archive(None)

    assert loaded is not None
    assert loaded.metadata.workspace == str(place.workspace)
    assert loaded.metadata.origin == origin
    assert loaded.model == "scripted"
    await storage.session.close()


def test_a_problem_is_a_notice_now_and_when_the_conversation_opens(place: AppPlace) -> None:
    storage = open_storage(place)
    heard: list[AnyEvent] = []
    storage.stream.add_listener(heard.append)
    storage.scope.report("the disk is slow")
    storage.entries.add_context("", "", priority=50, source="hook")

    assert storage.notices == ["the disk is slow"]
    assert isinstance(heard[0], Notice)
    assert (heard[0].level, heard[0].text) == ("warning", "the disk is slow")
    assert all(isinstance(event, Notice) and event.level == "warning" for event in heard)
    assert len(heard) == 2


def test_todos_belong_to_the_session_or_to_nobody(place: AppPlace) -> None:
    storage = open_storage(place)
    storage.notes.add_todo("by hand")
    assert [todo.text for todo in storage.notes.list_todos()] == ["by hand"]
    assert (
        [todo.text for todo in storage.create_plan().list_todos()] == ["by hand"]
        if hasattr(storage.create_plan(), "list_todos")
        else True
    )
    storage.scope.close()
    owned = open_storage(place)
    owned.has_session = True
    assert owned.notes.list_todos() == ()
    owned.notes.add_todo("mine")
    assert [todo.text for todo in owned.notes.list_todos()] == ["mine"]
    owned.scope.close()


def test_commands_of_the_workspace_come_first_once_it_is_trusted(place: AppPlace) -> None:
    ours, theirs = place.home / "commands", place.workspace / ".ollm" / "commands"
    assert open_storage(place).command_directories == (ours,)
    place.trust()
    assert open_storage(place).command_directories == (theirs, ours)


def test_snapshots_and_loops_are_as_the_settings_say(place: AppPlace) -> None:
    storage = open_storage(place)

    assert storage.snapshots is storage.snapshots
    assert storage.snapshot_files is storage.snapshot_files
    assert storage.goals is storage.goals
    assert storage.create_loop_detection() is not storage.create_loop_detection()
    assert storage.archive is storage.archive
