"""The conversations of the daemon and their turns."""

import asyncio
from pathlib import Path

import pytest

from ollm.daemon.bodies import MessageBody
from ollm.daemon.hub import TooManyClientsError, TurnSpeeds
from ollm.domain.context import Usage
from ollm.domain.events import MessageRecorded, TextDelta, ThinkingDelta, TurnFinished, TurnStarted
from ollm.runtime.base import ConversationOptions
from tests.covers import covers
from tests.daemon.inside import daemon_inside
from tests.daemon.running import WRITE, daemon, listing
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
        await found.hub.start_turn(session, MessageBody(text="hi"))
        with pytest.raises(TooManyClientsError, match="2 clients are already connected") as full:
            found.hub.make_room_for_client()
        assert full.value.action == "Disconnect one, or raise daemon.maxClients."
        del third


def test_a_turn_is_timed_by_its_first_word_and_while_words_come() -> None:
    now = [0.0]
    speeds = TurnSpeeds(lambda: now[0])
    usage = Usage(prompt_tokens=200, completion_tokens=30, reused_tokens=150)
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
    assert turn.reused_share == 0.75
