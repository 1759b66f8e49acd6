"""Fills a conversation with where its session stood, from the session, the workspace's record and the kept context."""

from ollm.app import open_conversation
from tests.app.places import AppPlace
from tests.app.test_conversation import options, say, use
from tests.servers.openai import ScriptedServer


async def test_a_damaged_session_goes_on_from_what_can_be_read_and_says_so(place: AppPlace) -> None:
    async with ScriptedServer(["One.", "Two.", "Three."]) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation:
            await say(conversation, "first")
            session = conversation.session_id or ""
            await say(conversation, "second")
        document = place.home / "sessions" / f"{session}.json"
        document.write_text(document.read_text().replace("Two.", '"broken'))

        async with open_conversation(options(place, session=session)) as conversation:
            status = await conversation.status()
            await say(conversation, "third")

    assert any(notice.startswith("The session file was damaged: ") for notice in status.notices)
    sent = [message["content"] for message in server.chats[2]["messages"][1:]]
    assert sent[:3] == ["first", "One.", "second"]
    assert sent[-1] == "third"
