"""A conversation in the daemon, held like a local one."""

import asyncio
from pathlib import Path

import pytest

from ollm.daemon.client import DaemonClient
from ollm.daemon.remote import open_remote
from ollm.domain.errors import OllmError
from ollm.domain.events import AnyEvent, TextDelta, TurnFinished
from ollm.runtime.base import Conversation, ForeignTurn
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
