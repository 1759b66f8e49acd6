"""A conversation put together: the workspace taken, the session resumed, the model chosen."""

from typing import Any

import pytest

from ollm.app import open_conversation
from ollm.domain.errors import BusyError
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


async def test_a_session_is_made_with_the_first_message_and_resumed_later(place: AppPlace) -> None:
    async with ScriptedServer(["One.", "Two."]) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation:
            assert conversation.session_id is None
            assert await say(conversation, "first") == "One."
            session = conversation.session_id
        assert session
        async with open_conversation(options(place, session=session[:8])) as conversation:
            assert conversation.session_id == session
            assert "Resumed" in " ".join((await conversation.status()).notices)
            await say(conversation, "second")

    assert [message["content"] for message in server.chats[1]["messages"][1:]] == ["first", "One.", "second"]


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


async def test_a_workspace_is_held_by_one_chat_at_a_time(place: AppPlace) -> None:
    async with ScriptedServer([]) as server:
        use(place, server)
        async with open_conversation(options(place)):
            with pytest.raises(BusyError):
                async with open_conversation(options(place)):
                    pass
            async with open_conversation(
                ConversationOptions(workspace=place.workspace, home=place.home, one_shot=True)
            ):
                pass
        async with open_conversation(options(place)):
            pass


async def test_the_model_of_a_session_is_used_again_when_none_is_set(place: AppPlace) -> None:
    async with ScriptedServer(["One."], models=("scripted", "other")) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation:
            await say(conversation, "first")
            session = conversation.session_id
        place.configure(provider={"type": "openai", "baseUrl": server.base_url})
        async with open_conversation(options(place, session=session)) as conversation:
            assert (await conversation.status()).model == "scripted"
        place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "other"})
        async with open_conversation(options(place, session=session)) as conversation:
            status = await conversation.status()
            assert status.model == "other"
            assert "This session used scripted; continuing with other." in status.notices


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
