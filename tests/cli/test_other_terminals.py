"""Waiting at the input while others may talk in the same session."""

import asyncio
from typing import Any, cast

import pytest

from ollm.cli.other_terminals import wait_for_input
from ollm.runtime.base import Conversation, ForeignTurn

PATIENCE = 30.0


class Others:
    """The one thing that is asked of a conversation here: who begins a turn next."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[ForeignTurn | None] = asyncio.Queue()
        self.waiting = 0

    async def wait_for_foreign_turn(self) -> ForeignTurn | None:
        self.waiting += 1
        try:
            return await self.begun.get()
        finally:
            self.waiting -= 1


def turn(text: str) -> ForeignTurn:
    return ForeignTurn(text=text, after=1)


async def start(others: Others, shown: list[str]) -> tuple[asyncio.Future[str], asyncio.Task[str]]:
    typed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def show(begun: ForeignTurn) -> None:
        shown.append(begun.text)

    waiting = asyncio.ensure_future(wait_for_input(typed, cast("Conversation", cast("Any", others)), show))
    await asyncio.sleep(0)
    return typed, waiting


async def test_what_is_typed_comes_back_and_nobody_listens_any_more() -> None:
    others, shown = Others(), []
    typed, waiting = await start(others, shown)
    typed.set_result("hello")

    assert await asyncio.wait_for(waiting, PATIENCE) == "hello"
    assert shown == []
    assert others.waiting == 0


async def test_turns_of_others_are_shown_first_each_in_its_order() -> None:
    others, shown = Others(), []
    typed, waiting = await start(others, shown)
    others.begun.put_nowait(turn("one"))
    others.begun.put_nowait(turn("two"))
    async with asyncio.timeout(PATIENCE):
        while len(shown) < 2:
            await asyncio.sleep(0)
    assert shown == ["one", "two"]
    assert not waiting.done()
    typed.set_result("mine")

    assert await asyncio.wait_for(waiting, PATIENCE) == "mine"


async def test_where_nobody_else_comes_it_waits_for_the_input_alone() -> None:
    others, shown = Others(), []
    typed, waiting = await start(others, shown)
    others.begun.put_nowait(None)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    assert others.waiting == 0
    typed.set_result("mine")

    assert await asyncio.wait_for(waiting, PATIENCE) == "mine"


async def test_what_was_typed_before_is_taken_at_once() -> None:
    others = Others()
    typed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    typed.set_result("early")

    async def show(begun: ForeignTurn) -> None:
        raise AssertionError(begun)

    assert await wait_for_input(typed, cast("Conversation", cast("Any", others)), show) == "early"
    assert others.waiting == 0


async def test_leaving_stops_listening() -> None:
    others = Others()
    _, waiting = await start(others, [])
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert others.waiting == 0
