"""The conversations of the daemon, and the terminal's side of them."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ollm.daemon import bodies
from ollm.daemon.bodies import MessageBody
from ollm.daemon.client import PIECE_BYTES, DaemonClient, open_remote
from ollm.daemon.hub import TooManyClientsError, TurnSpeeds
from ollm.domain.context import Usage
from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.events import AnyEvent, MessageRecorded, TextDelta, ThinkingDelta, TurnFinished, TurnStarted
from ollm.domain.messages import ImagePart
from ollm.runtime.base import Attachment, Conversation, ConversationOptions, ForeignTurn
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.covers import covers
from tests.daemon.inside import daemon_inside
from tests.daemon.running import WRITE, Daemon, daemon, listing
from tests.servers.answers import Answer

NOBODY = "00000000-0000-4000-8000-000000000000"


async def test_while_a_turn_runs_what_would_disturb_it_is_a_conflict(tmp_path: Path) -> None:
    async with daemon(tmp_path, [WRITE, "done"]) as found:
        session = await found.open()
        at = f"/sessions/{session}"
        async with found.stream("POST", f"{at}/messages", {"text": "write"}) as events:
            asked = await anext(event async for event in events if event["type"] == "confirmation-requested")
            for request in (
                ("POST", f"{at}/messages", {"text": "more"}),
                ("POST", f"{at}/commands", {"name": "model", "arguments": "other"}),
                ("POST", f"{at}/snapshots"),
                ("PATCH", at, {"status": "archived"}),
            ):
                assert (await found.ask(*request)).status == 409, request
            assert (await found.ask("PATCH", at, {"title": "Renamed"})).json["metadata"]["title"] == "Renamed"
            question = f"{at}/confirmations/{asked['correlationId']}"
            assert (await found.ask("POST", f"{at}/confirmations/{NOBODY}", {"approved": True})).status == 404
            assert (await found.ask("POST", question, {"approved": True, "scope": "once"})).json == {"accepted": True}
            assert (await found.ask("POST", question, {"approved": False})).status == 409
            assert [event["type"] async for event in events][-1] == "turn-finished"
        listed = (await found.ask("GET", listing(found.workspace))).json
        assert [(line["title"], line["status"]) for line in listed] == [("Renamed", "active")]
        assert (await found.ask("PATCH", at, {"status": "archived"})).status == 200
        assert [line["status"] for line in (await found.ask("GET", listing(found.workspace))).json] == ["archived"]
        assert (await found.ask("POST", f"{at}/messages", {"text": "more"})).status == 404


def configure(directory: Path, text: str) -> None:
    (directory / ".ollm").mkdir()
    (directory / ".ollm" / "config.yaml").write_text(text)


async def test_a_session_that_nobody_uses_is_closed_and_can_be_opened_again(tmp_path: Path) -> None:
    configure(tmp_path, "daemon:\n  idleMinutes: 0.02\n")
    async with daemon(tmp_path, ["hi", "again"]) as found:
        session = await found.open()
        await found.say(session, "hello")
        for _ in range(100):
            if (await found.ask("GET", "/health")).json["sessions"] == 0:
                break
            await asyncio.sleep(0.1)
        assert (await found.ask("GET", f"/sessions/{session}/status")).status == 404
        assert not list((found.home / "sessions").glob("*.lock"))
        assert await found.open(sessionId=session) == session
        said = await found.say(session, "still there?")
    assert said[-1]["reason"] == "answered"


async def test_many_sessions_do_not_run_out_of_descriptors(tmp_path: Path) -> None:
    async with daemon(tmp_path, descriptors=440) as found:
        for number in range(20):
            place = tmp_path / f"project{number}"
            place.mkdir()
            reply = await found.ask("POST", "/sessions", {"workspacePath": str(place)})
            assert reply.status == 201, (number, reply.body)
        assert (await found.ask("GET", "/health")).json["sessions"] == (440 - 384) // 6


@covers("W107", "W159")
async def test_opening_another_session_closes_the_first_one(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two"]) as found:
        first = await found.open()
        await found.say(first, "hi")
        second = await found.open()

        assert (await found.ask("POST", f"/sessions/{first}/cancel")).status == 404
        states = {line["sessionId"]: line["status"] for line in (await found.ask("GET", listing(found.workspace))).json}
        assert states[first] == "closed"
        assert second != first


async def test_many_sessions_of_a_folder_are_open_at_once_if_the_settings_say_so(tmp_path: Path) -> None:
    configure(tmp_path, "workspace:\n  sessions: many\n")
    async with daemon(tmp_path, [WRITE, "two", "done"]) as found:
        first = await found.open()
        async with found.stream("POST", f"/sessions/{first}/messages", {"text": "write"}) as events:
            asked = await anext(event async for event in events if event["type"] == "confirmation-requested")
            second = await found.open()
            assert (await found.say(second, "hi"))[-1]["reason"] == "answered"
            status = (await found.ask("GET", f"/sessions/{first}/status")).json
            assert [one["correlationId"] for one in status["questions"]] == [asked["correlationId"]]
            question = f"/sessions/{first}/confirmations/{asked['correlationId']}"
            assert (await found.ask("POST", question, {"approved": True})).status == 200
            assert [event async for event in events][-1]["reason"] == "answered"
        states = {line["sessionId"]: line["status"] for line in (await found.ask("GET", listing(found.workspace))).json}
        assert states == {first: "active", second: "active"}


async def test_two_clients_see_the_same_events(tmp_path: Path) -> None:
    async with daemon(tmp_path, [WRITE, "Written."]) as found:
        session = await found.open()

        async def watch() -> list[dict[str, object]]:
            seen: list[dict[str, object]] = []
            async with found.stream("GET", f"/sessions/{session}/events", last=0) as events:
                async for event in events:
                    seen.append(event)
                    if event["type"] == "confirmation-requested":
                        place = f"/sessions/{session}/confirmations/{event['correlationId']}"
                        assert (await found.ask("POST", place, {"approved": True})).status == 200
                    if event["type"] == "turn-finished":
                        break
            return seen

        watching = asyncio.create_task(watch())
        seen = await found.say(session, "write")
        other = await asyncio.wait_for(watching, 30)

    assert [event["seq"] for event in seen] == list(range(seen[0]["seq"], seen[-1]["seq"] + 1))
    assert other[-len(seen) :] == seen
    assert (found.workspace / "new.txt").read_text() == "x"


async def test_who_hears_of_the_end_of_a_turn_may_begin_the_next_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon_inside(tmp_path, monkeypatch, *["Yes."] * 5) as found:
        session = await found.open()
        for number in range(5):
            last = (await found.say(session, f"question {number}"))[-1]
            assert isinstance(last, TurnFinished)
            status, told = await found.get(f"/sessions/{session}/status"), found.hub.describe(session)
            assert (status["turnAfter"], told["running"]) == (None, False)


async def test_as_many_sessions_are_open_as_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon_inside(tmp_path, monkeypatch, Answer(text="a b", pace=30.0), sessions=2) as found:
        places = [tmp_path / name for name in "abc"]
        for place in places:
            place.mkdir()
        first, second = [await found.open(place) for place in places[:2]]
        found.hub.get(first)
        third = await found.open(places[2])
        assert found.hub.find(second) is None, "the one that was not used longest is closed"
        assert found.hub.find(first) is not None
        readers = [found.hub.get(name).log.open_reader(0) for name in (first, third)]
        with pytest.raises(TooManyClientsError, match="2 sessions are open and in use"):
            await found.hub.open(ConversationOptions(workspace=places[1], interactive=True))
        del readers


async def test_the_oldest_stream_makes_way_where_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon_inside(tmp_path, monkeypatch, Answer(text="a b", pace=30.0), clients=2) as found:
        session = await found.open()
        log = found.hub.get(session).log
        found.hub.make_room_for_client()
        first, second = log.open_reader(0), log.open_reader(0)
        first.opened, second.opened = 1.0, 2.0
        found.hub.make_room_for_client()
        assert log.readers == [second]
        third = log.open_reader(0)
        await found.hub.start_turn(found.hub.get(session), MessageBody(text="hi"))
        with pytest.raises(TooManyClientsError, match="2 clients are already connected") as full:
            found.hub.make_room_for_client()
        assert full.value.action == "Disconnect one, or raise daemon.maxClients."
        del third


def test_a_turn_is_timed_by_its_first_word_and_while_words_come() -> None:
    now = [0.0]
    speeds = TurnSpeeds(lambda: now[0])
    usage = Usage(prompt_tokens=200, completion_tokens=30)
    for at, event in (
        (0.0, TurnStarted(message_id=5, text="x")),
        (2.0, ThinkingDelta(text="a")),
        (3.0, TextDelta(text="b")),
        (4.0, MessageRecorded(message_id=6, role="assistant")),
        (9.0, TextDelta(text="c")),
        (10.0, MessageRecorded(message_id=8, role="assistant")),
        (11.0, TurnFinished(reason="answered", usage=usage)),
    ):
        now[0] = at
        speeds.record_event(event)

    (turn,) = speeds.turns
    assert (turn.message_id, turn.first_word_seconds, turn.tokens_per_second) == (5, 2.0, 10.0)


@asynccontextmanager
async def relay(socket: Path) -> AsyncIterator[list[str]]:
    """Stands between the daemon and its clients, and notes the first line of every request."""
    behind = socket.with_name("behind.sock")
    socket.rename(behind)
    asked: list[str] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: bool) -> None:
        while piece := await reader.read(65536):
            if note:
                lines = piece.decode("utf-8", "replace").splitlines()
                asked.extend(line.rpartition(" ")[0] for line in lines if line.endswith("HTTP/1.1"))
            writer.write(piece)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(str(behind))
        both = pump(reader, inner_writer, note=True), pump(inner_reader, writer, note=False)
        await asyncio.gather(*both, return_exceptions=True)

    server = await asyncio.start_unix_server(serve, str(socket))
    try:
        yield asked
    finally:
        server.close()
        socket.unlink(missing_ok=True)
        behind.rename(socket)


@covers("W134")
async def test_a_chat_through_the_daemon_begins_with_init_and_then_opens_a_session(tmp_path: Path) -> None:
    async with running(tmp_path, ["From the daemon."]) as runner:
        await runner.run("daemon", "start")
        try:
            async with relay(runner.home / "run" / "daemon.sock") as asked:
                async with at_terminal(runner, "chat", "--daemon", "--new") as terminal:
                    terminal.type("hi" + ENTER)
                    await terminal.wait_for("From the daemon.")
                    terminal.type(CTRL_D)
                    assert await terminal.ended() == 0
        finally:
            await runner.run("daemon", "stop")

    begun = [line for line in asked if line.startswith("POST")]
    assert begun[:2] == ["POST /init", "POST /sessions"]


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
