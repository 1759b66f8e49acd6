"""Events on the wire."""

import asyncio
import json
from pathlib import Path

import msgspec

from ollm.daemon.event_log import EventFrame
from ollm.domain.events import TextDelta
from tests.daemon.running import Daemon, daemon


async def raw_events(found: Daemon, session: str, last: str, enough: int) -> list[list[str]]:
    """The first events of a stream, each as the lines it was sent in."""
    reader, writer = await asyncio.open_unix_connection(str(found.socket))
    request = f"GET /sessions/{session}/events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {last}\r\n\r\n"
    writer.write(request.encode())
    content = b""
    while content.count(b"\n\n") < enough:
        content += await asyncio.wait_for(reader.read(65536), 10)
    writer.close()
    head, _, body = content.partition(b"\r\n\r\n")
    assert b"content-type: text/event-stream" in head
    lines = [line for line in body.decode().split("\r\n") if line.startswith("id: ")]
    return [line.rstrip("\n").split("\n") for line in lines]


async def test_an_event_is_sent_as_its_number_its_type_and_itself(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"]) as found:
        session = await found.open()
        said = await found.say(session, "hello")

        for last in ("0", "-1", "nonsense", "9" * 30):
            first, *_ = await raw_events(found, session, last, 3)
            assert first[0] == "id: 1", "what cannot be the number of an event is none"
        known = said[1]["seq"]
        found_again = await raw_events(found, session, str(known), len(said) - 2)

    assert [[name.partition(":")[0] for name in lines] for lines in found_again] == [["id", "event", "data"]] * (
        len(said) - 2
    )
    events = [json.loads(lines[2].removeprefix("data: ")) for lines in found_again]
    assert events == said[2:]
    for lines, event in zip(found_again, events, strict=True):
        assert lines[:2] == [f"id: {event['seq']}", f"event: {event['type']}"]


def test_a_frame_is_one_id_one_name_and_one_line_of_data() -> None:
    frame = EventFrame(TextDelta(text="a\nb é", seq=7, session_id="s", timestamp="t")).data
    lines = frame.decode().split("\n")

    assert lines[:2] == ["id: 7", "event: text-delta"]
    assert lines[3:] == ["", ""]
    assert msgspec.json.decode(lines[2].removeprefix("data: "))["text"] == "a\nb é"
