"""A conversation put together: the workspace taken, the session resumed, the model chosen."""

from typing import Any

from ollm.app import open_conversation
from ollm.runtime.base import Conversation, ConversationOptions
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


def options(place: AppPlace, **more: Any) -> ConversationOptions:
    return ConversationOptions(workspace=place.workspace, home=place.home, interactive=True, **more)


def use(place: AppPlace, server: ScriptedServer, **more: Any) -> None:
    place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"}, **more)


async def say(conversation: Conversation, text: str) -> str:
    from ollm.domain.events import TextDelta

    said = ""
    async with conversation.turn(text) as events:
        async for event in events:
            said += event.text if isinstance(event, TextDelta) else ""
    return said


async def test_the_newest_session_is_gone_on_with_unless_it_is_archived_or_was_asked_once(place: AppPlace) -> None:
    async with ScriptedServer(["One.", "Two."]) as server:
        use(place, server)
        async with open_conversation(options(place, newest=True)) as conversation:
            assert (await conversation.status()).notices[0] == "No session in this workspace yet; starting a new one."
            await say(conversation, "first")
            chat = conversation.session_id
        async with open_conversation(
            ConversationOptions(workspace=place.workspace, home=place.home, one_shot=True)
        ) as conversation:
            await say(conversation, "once")
            once = conversation.session_id
        scripted = ConversationOptions(workspace=place.workspace, home=place.home, newest=True)
        async with open_conversation(scripted) as conversation:
            assert conversation.session_id == once
        async with open_conversation(options(place, newest=True)) as conversation:
            assert conversation.session_id == chat
        place.process().library.archive(chat or "", True)
        async with open_conversation(options(place, newest=True)) as conversation:
            assert conversation.session_id == once


async def test_a_small_window_is_said(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=1024) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation:
            assert any(
                "A context window of 1024 tokens is too small" in notice
                for notice in (await conversation.status()).notices
            )


async def test_a_conversation_that_is_not_recorded_leaves_nothing(place: AppPlace) -> None:
    async with ScriptedServer(["One."]) as server:
        use(place, server)
        async with open_conversation(options(place, record=False)) as conversation:
            await say(conversation, "secret words")
            session = conversation.session_id
            assert session
    assert place.process().session_files.places.find_home(session) is None


async def test_a_mode_is_proposed_only_where_somebody_answers(place: AppPlace) -> None:
    async with ScriptedServer([]) as server:
        use(place, server, modes={"autoSwitch": "propose"})
        async with open_conversation(options(place)) as conversation:
            assert conversation.parts.state.auto_switch == "propose"
        alone = ConversationOptions(workspace=place.workspace, home=place.home, one_shot=True)
        async with open_conversation(alone) as conversation:
            assert conversation.parts.state.auto_switch == "off"
