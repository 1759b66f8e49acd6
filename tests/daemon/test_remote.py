"""A conversation in the daemon, held like a local one."""

import asyncio
import base64
from pathlib import Path

import pytest

from ollm.daemon import bodies
from ollm.daemon.client import PIECE_BYTES, DaemonClient, open_remote
from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.events import AnyEvent, TextDelta, TurnFinished
from ollm.domain.messages import ImagePart
from ollm.runtime.base import Attachment, Conversation, ForeignTurn
from tests.daemon.inside import daemon_inside
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer

SLOW = Answer(text="slowly it says this", pace=0.05)


class Client:
    """One terminal, as far as the daemon can tell."""

    def __init__(self, found: Daemon) -> None:
        self.client = DaemonClient(found.socket)
        self.body = {"workspacePath": str(found.workspace)}

    async def open(self, session: str | None = None) -> Conversation:
        return await open_remote(self.client, {**self.body, **({"sessionId": session} if session else {})})


async def heard(turn) -> list[AnyEvent]:
    async with turn as events:
        return [event async for event in events]


def text_of(events: list[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_a_conversation_goes_on_after_the_daemon_was_started_anew(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        conversation = await Client(found).open()
        assert text_of(await heard(conversation.turn("first"))) == "one"
        for kill, text in ((15, "two"), (9, "three")):
            await found.end(kill)
            with pytest.raises(OllmError, match="does not respond"):
                await heard(conversation.turn("nobody hears this"))
            await found.start()
            assert text_of(await heard(conversation.turn(f"say {text}"))) == text
        said = [message for message in await conversation.history() if message["role"] == "user"]
        assert [message["parts"][0]["text"] for message in said] == ["first", "say two", "say three"]
        await conversation.close()


async def test_an_idle_client_sees_the_turn_another_one_begins_and_not_its_own(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["mine", SLOW, "third"]) as found:
        first, second = Client(found), Client(found)
        one = await first.open()
        await one.status()
        other = await second.open(one.session_id)
        await other.status()
        assert text_of(await heard(one.turn("from the first"))) == "mine"

        begun = await asyncio.wait_for(other.wait_for_foreign_turn(), 10)
        assert begun is not None
        assert begun.text == "from the first"
        assert text_of(await heard(other.follow_turn(begun.after))) == "mine"

        waiting = asyncio.create_task(one.wait_for_foreign_turn())
        events = await heard(other.turn("from the second"))
        begun = await asyncio.wait_for(waiting, 10)
        assert isinstance(begun, ForeignTurn)
        assert begun.text == "from the second"
        again = await heard(one.follow_turn(begun.after))
        assert [event.seq for event in again] == [event.seq for event in events if event.seq > begun.after]
        assert isinstance(again[-1], TurnFinished)

        listening = asyncio.create_task(other.wait_for_foreign_turn())
        await asyncio.sleep(0.3)
        assert not listening.done(), "one's own turn is no news"
        await found.ask("DELETE", f"/sessions/{one.session_id}")
        assert await asyncio.wait_for(listening, 10) is None
        await one.close()
        await other.close()


async def test_a_remote_conversation_is_like_a_local_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon_inside(tmp_path, monkeypatch, "One.", "Two.", "Three.") as found:
        conversation = await found.converse()
        assert text_of(await heard(conversation.turn("hi"))) == "One."
        assert [message["role"] for message in await conversation.history()] == ["user", "assistant"]
        assert [message["id"] for message in await conversation.history(before=2, limit=1)] == [1]
        assert (await conversation.command("mode", "plan")).ok
        assert (await conversation.status()).mode == "plan"
        await found.hub.close(conversation.session_id or "")
        assert text_of(await heard(conversation.turn("again"))) == "Two.", "it was closed meanwhile and opens again"
        found.server.script = [Answer(text="a b c d", pace=30.0)]
        async with conversation.turn("hi") as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        held = found.hub.get(conversation.session_id or "")
        async with asyncio.timeout(60):
            while held.running:  # leaving a turn early cancels it
                await asyncio.sleep(0.02)
        await conversation.close()
        assert found.hub.count == 1, "leaving ends nothing"


async def test_pictures_and_texts_go_beside_a_message_whatever_their_size(tmp_path: Path) -> None:
    data = base64.b64encode(b"\x89PNG" + bytes(PIECE_BYTES)).decode()
    beside = (
        Attachment(name="look.png", image=ImagePart(media_type="image/png", data=data)),
        Attachment(name="notes.txt", text="ä note\n" * 10),
    )
    async with daemon(tmp_path, ["I see."]) as found:
        conversation = await Client(found).open()
        events = await heard(conversation.turn("What is this?", beside))
        (message, _) = await conversation.history(limit=2)
        await conversation.close()

    assert text_of(events) == "I see."
    assert [part["type"] for part in message["parts"]] == ["text", "image", "text"]
    assert message["parts"][1] == {"type": "image", "mediaType": "image/png", "data": data}
    assert message["parts"][2]["text"] == f"\n\n[notes.txt]\n{beside[1].text}"


async def test_one_attachment_and_all_together_have_their_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MAX_ATTACHMENT_BYTES", 1000)
    monkeypatch.setattr(bodies, "MAX_WAITING_BYTES", 2500)
    async with daemon_inside(tmp_path, monkeypatch, "I see.") as found:
        session = await found.open()

        async def attach(size: int, name: str | None = None) -> str:
            piece = {"name": "a.txt", "mediaType": "text/plain", "data": base64.b64encode(b"x" * size).decode()}
            reply = await found.post(f"/sessions/{session}/attachments", **piece, **({"id": name} if name else {}))
            return str(reply["id"])

        first = await attach(1000)
        with pytest.raises(OllmError, match=r"'a.txt' is too large to attach: the limit is 10 MB per file, 32 MB"):
            await attach(1, first)
        with pytest.raises(NotFoundError, match=f"No attachment {first}"):
            await attach(1, first)
        half, other = await attach(600), await attach(1000)
        assert await attach(400, half) == half
        with pytest.raises(OllmError, match="too large"):
            await attach(501)
        await found.say(session, "look", attachments=[other, half])
        assert str(found.server.chats[0]).count("x" * 1000) == 2
        with pytest.raises(NotFoundError):
            await found.say(session, "again", attachments=[half])
