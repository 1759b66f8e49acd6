"""A process killed at any moment loses nothing that it was told is recorded."""

import asyncio
import os
import random
import select
import signal
import time

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart
from tests.covers import covers
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call

KILLS = size(100, 5000)
ROUNDS_PER_SESSION = 20
PATIENCE = 60.0  # a busy machine may take its time


async def talk(home: Home, session_id: str, acknowledge, prefix: str) -> None:
    """Record without end: questions, answers that stream, calls, ends of turns."""
    service = home.service()
    await service.open_session(session_id)
    turn = 0
    while True:
        turn += 1
        text = f"{prefix}.{turn}"
        sent = await service.record_message(
            session_id, Message(role="user", parts=(TextPart(text=text),), timestamp=AT)
        )
        acknowledge(f"m {sent.id} {text}")
        answer = f"{text}a " + "word " * (turn % 60)
        await service.record_partial(session_id, [TextPart(text=answer[: len(answer) // 2])])
        parts = (TextPart(text=answer), ToolCallPart(id=text))
        sent = await service.record_message(session_id, Message(role="assistant", parts=parts, timestamp=AT))
        acknowledge(f"m {sent.id} {answer}")
        await service.record_tool_call(session_id, call(text, message_id=sent.id))
        await service.record_tool_call(session_id, call(text, message_id=sent.id, result=answer))
        acknowledge(f"c 0 {text}")
        if turn % 3 == 0:
            await service.end_turn(session_id)
        if turn % 7 == 0:
            await service.save_session(session_id)


def killed_talk(home: Home, session_id: str, prefix: str, seconds: float, *, begun: bool) -> list[str]:
    """What the child was told is recorded before it was killed, so long after it started, or had `begun` to record."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            asyncio.run(talk(home, session_id, lambda text: os.write(writing, (text + "\n").encode()), prefix))
        finally:
            os._exit(1)
    os.close(writing)
    if begun:
        select.select([reading], [], [], PATIENCE)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode().split("\n")[:-1]


@pytest.mark.slow
@pytest.mark.soak
@covers("S9.3", "P7", "H229", "H230", "H231", "D159")
def test_after_kill_9_at_random_moments_every_acknowledged_record_is_there_once_and_in_order(tmp_path):
    home = Home(tmp_path)
    chance = random.Random(7)
    messages: dict[int, str] = {}
    calls: set[str] = set()
    total, session_id = 0, ""
    for kill in range(KILLS):
        if kill % ROUNDS_PER_SESSION == 0:
            session_id, messages, calls = home.recorded("start"), {}, set()
        for line in killed_talk(home, session_id, str(kill), chance.uniform(0.0, 0.04), begun=kill % 5 > 0):
            kind, number, text = line.split(" ", 2)
            if kind == "m":
                messages[int(number)] = text
            else:
                calls.add(text)
        session = home.files.read(session_id).session
        found = {message.id: message.text for message in session.messages}
        assert [message.id for message in session.messages] == list(range(1, len(found) + 1))
        assert {number: found.get(number) for number in messages} == messages
        finished = [record.id for record in session.tool_calls if record.status == "ok"]
        assert calls <= set(finished)
        assert len(session.tool_calls) == len({record.id for record in session.tool_calls})
        total += len(messages)
    assert total > KILLS // 2  # the loop did record, it was not killed before it began
