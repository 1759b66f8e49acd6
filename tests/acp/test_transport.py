"""Lines of JSON on two descriptors: bad input is answered, order is kept, the end waits for answers."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.acp import transport
from ollm.acp.transport import BadMessage, StdioTransport, encode_message, iterate_lines, parse_message

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello"}\n'


class Wire:
    """A transport between two pipes."""

    def __init__(self) -> None:
        self.source, self.to_agent = os.pipe()
        self.from_agent, self.target = os.pipe()
        self.transport = StdioTransport(self.source, self.target)
        self.received = b""

    def read_line(self) -> Any:
        while b"\n" not in self.received:
            self.received += os.read(self.from_agent, 1 << 16)
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    async def expect(self) -> Any:
        async with asyncio.timeout(30):
            return await asyncio.to_thread(self.read_line)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage", -32700),
        (b"\xff\xfe", -32700),
        (b'{"id":1,"method":"x"', -32700),
        (b"[" * 100_000, -32700),
        (b"[1, 2]", -32600),
        (b"7", -32600),
        (b'{"id":{},"method":"x"}', -32600),
        (b'{"id":1,"method":5}', -32600),
        (b'{"id":1}', -32600),
        (b'{"id":1,"error":"text"}', -32600),
        (b"{}", -32600),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_the_next_is_read(line: bytes, code: int) -> None:
    wire = Wire()
    os.write(wire.to_agent, line[: 1 << 14] + b"\n" + HELLO)

    assert (await wire.transport.receive() or {})["method"] == "hello"
    assert (await wire.expect())["error"]["code"] == code


def test_what_is_beside_the_parameters_does_not_take_their_place() -> None:
    found = parse_message(b'{"id":1,"method":"x","params":{"cwd":"/a","_meta":{"cwd":"/b","self":1}}}')

    assert found["params"] == {"cwd": "/a"}


def test_half_a_character_is_replaced_and_the_rest_is_read() -> None:
    assert parse_message(b'{"id":1,"method":"x","params":{"t":"a\\ud83d b"}}')["params"] == {"t": "a? b"}


@given(st.binary(max_size=200))
def test_any_line_is_a_message_or_a_bad_one(line: bytes) -> None:
    try:
        message = parse_message(line)
    except BadMessage:
        return
    assert isinstance(message, dict)


def test_lines_come_whole_wherever_they_were_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CHUNK_BYTES", 3)
    file = tmp_path / "input"
    file.write_bytes(b'{"a":1}\r\n\n  \n{"b":2}\nlast')
    descriptor = os.open(file, os.O_RDONLY)

    assert [bytes(line).strip() for line in iterate_lines(descriptor)] == [b'{"a":1}', b'{"b":2}', b"last"]
    os.close(descriptor)


def test_a_line_that_is_too_long_is_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_MESSAGE_BYTES", 10)
    monkeypatch.setattr(transport, "CHUNK_BYTES", 4)
    file = tmp_path / "input"
    file.write_bytes(b"short\n" + b"x" * 50 + b"\nagain\n")
    descriptor = os.open(file, os.O_RDONLY)
    first, long, last = iterate_lines(descriptor)
    os.close(descriptor)

    assert (first, last) == (b"short", b"again")
    assert isinstance(long, BadMessage)


async def test_messages_keep_their_order_and_wait_for_a_slow_reader() -> None:
    wire = Wire()
    sending = asyncio.create_task(send_many(wire.transport, 400))
    got = [(await wire.expect())["params"]["number"] for _ in range(400)]
    await sending

    assert got == list(range(400))


async def send_many(found: StdioTransport, count: int) -> None:
    for number in range(count):
        await found.send({"method": "n", "params": {"number": number, "text": "x" * 10_000}})


async def test_the_end_of_the_input_waits_until_every_request_is_answered() -> None:
    wire = Wire()
    os.write(wire.to_agent, HELLO)
    os.close(wire.to_agent)
    assert await wire.transport.receive() is not None
    ending = asyncio.create_task(wire.transport.receive())
    async with asyncio.timeout(30):
        await wire.transport.ended.wait()
    assert not ending.done()
    await wire.transport.send({"jsonrpc": "2.0", "id": 1, "result": {}})

    async with asyncio.timeout(30):
        assert await ending is None
    assert (await wire.expect())["result"] == {}


async def test_nothing_is_waited_for_when_nobody_reads_any_more() -> None:
    wire = Wire()
    os.write(wire.to_agent, HELLO)
    os.close(wire.to_agent)
    os.close(wire.from_agent)
    assert await wire.transport.receive() is not None

    async with asyncio.timeout(30):
        assert await wire.transport.receive() is None


async def test_what_cannot_be_written_is_a_connection_error_not_a_hang() -> None:
    wire = Wire()
    os.close(wire.from_agent)
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(30):
            await send_many(wire.transport, 10_000)


def test_nothing_but_a_file_holds_the_sign_that_ends_texts() -> None:
    note = encode_message({"method": "n", "params": {"a\0": ["b\0", {"c": r"\u0000"}]}})
    text = encode_message({"method": "fs/write_text_file", "params": {"content": "b\0"}})

    assert json.loads(note)["params"] == {"a\ufffd": ["b\ufffd", {"c": r"\u0000"}]}
    assert json.loads(text)["params"] == {"content": "b\0"}
