"""What ends a chat from outside."""

import asyncio
import os
import signal

import pytest

from ollm.cli.signals import TAKEOVER_MESSAGE, ShutdownHandler, get_signal_exit_code, handle_signals

PATIENCE = 30.0


@pytest.mark.parametrize(("name", "code"), [("SIGHUP", 129), ("SIGINT", 130), ("SIGTERM", 143)])
def test_the_exit_code_is_the_one_a_shell_reports(name: str, code: int) -> None:
    assert get_signal_exit_code(signal.Signals[name]) == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_leaves_what_is_on_the_screen(number: signal.Signals) -> None:
    ending, left = ShutdownHandler(), asyncio.Event()
    ending.attach(left.set, lambda: False)
    with handle_signals(ending):
        os.kill(os.getpid(), number)
        await asyncio.wait_for(left.wait(), PATIENCE)

    assert ending.signal == number
    assert ending.sentence == ""


async def test_a_signal_that_comes_first_counts_as_soon_as_there_is_something_to_leave() -> None:
    ending, left = ShutdownHandler(), asyncio.Event()
    ending.handle_signal(signal.SIGTERM)
    assert not left.is_set()
    ending.attach(left.set, lambda: False)

    await asyncio.wait_for(left.wait(), PATIENCE)


async def test_without_a_signal_nothing_is_left() -> None:
    ending, left = ShutdownHandler(), asyncio.Event()
    ending.attach(left.set, lambda: False)
    await asyncio.sleep(0.15)

    assert not left.is_set()


async def test_the_workspace_is_given_up_only_when_somebody_asked_for_it() -> None:
    ending, left, asked = ShutdownHandler(), [], [False]
    ending.release_workspace()
    ending.attach(lambda: left.append(1), lambda: asked[0])
    ending.release_workspace()
    assert (left, ending.sentence) == ([], "")
    asked[0] = True
    ending.release_workspace()

    assert left == [1]
    assert ending.sentence == TAKEOVER_MESSAGE
    assert ending.signal is None


async def test_sigusr1_asks_and_ctrl_c_ends_nothing() -> None:
    ending, left = ShutdownHandler(), asyncio.Event()
    ending.attach(left.set, lambda: True)
    with handle_signals(ending):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(left.wait(), PATIENCE)

    assert ending.sentence == TAKEOVER_MESSAGE


async def test_the_usual_handlers_are_back_afterwards() -> None:
    with handle_signals(ShutdownHandler()):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        assert signal.getsignal(number) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def test_a_list_before_the_chat_is_left_first_and_then_the_chat() -> None:
    ending, order = ShutdownHandler(), []
    left = asyncio.Event()
    ending.attach(lambda: (order.append("chat"), left.set())[0], lambda: False)
    with ending.override_leave(lambda: order.append("list")):
        ending.handle_signal(signal.SIGTERM)
        assert order == ["list"]
    await asyncio.wait_for(left.wait(), PATIENCE)

    assert order == ["list", "chat"]


async def test_after_a_list_that_stood_alone_there_is_nothing_to_leave() -> None:
    ending, order = ShutdownHandler(), []
    with ending.override_leave(lambda: order.append("list")):
        pass
    ending.handle_signal(signal.SIGTERM)

    assert order == []
