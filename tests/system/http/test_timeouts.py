"""How long a silent server is waited for: only the time spent waiting counts."""

import asyncio

import pytest

from ollm.system.http.failures import FirstByteTimeout, StreamStalled
from ollm.system.http.timeouts import SilenceTimer, Timeouts


async def wait(timer: SilenceTimer, seconds: float) -> None:
    async with timer.limit_wait():
        await asyncio.sleep(seconds)


async def test_before_the_first_sign_the_first_limit_counts() -> None:
    timer = SilenceTimer(Timeouts(first=0.02, stall=600))

    with pytest.raises(FirstByteTimeout, match=r"^no answer within 0\.02 s$"):
        await wait(timer, 60)


async def test_after_it_the_limit_between_signs_counts() -> None:
    timer = SilenceTimer(Timeouts(first=600, stall=0.02))
    timer.reset()

    with pytest.raises(StreamStalled, match=r"^no data for 0\.02 s$"):
        await wait(timer, 60)


async def test_reading_the_prompt_is_work_that_has_not_begun_to_answer() -> None:
    timer = SilenceTimer(Timeouts(first=0.02, stall=600))
    timer.reset(begun=False)

    with pytest.raises(FirstByteTimeout):
        await wait(timer, 60)


async def test_an_answer_that_has_begun_stays_begun() -> None:
    timer = SilenceTimer(Timeouts(first=600, stall=0.02))
    timer.reset()
    timer.reset(begun=False)

    with pytest.raises(StreamStalled):
        await wait(timer, 60)


async def test_waits_add_up_until_a_sign_of_work_comes() -> None:
    timer = SilenceTimer(Timeouts(first=100, stall=600))
    timer._waited = 100
    with pytest.raises(FirstByteTimeout):
        await wait(timer, 60)
    timer.reset(begun=False)
    await wait(timer, 0)
    assert 0 < timer._waited < 60


async def test_time_spent_elsewhere_does_not_count() -> None:
    timer = SilenceTimer(Timeouts(first=1, stall=1))
    await wait(timer, 0)
    await asyncio.sleep(0.05)
    assert timer._waited < 0.05


def test_the_usual_limits() -> None:
    assert (Timeouts().connect, Timeouts().first, Timeouts().stall) == (5, 600, 120)
