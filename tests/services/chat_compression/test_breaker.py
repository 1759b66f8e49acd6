"""A compression that makes no room is not tried for ever."""

from ollm.services.chat_compression import CompressionBreaker


def test_a_breaker_opens_after_two_compressions_without_room_and_closes_again() -> None:
    breaker = CompressionBreaker()
    breaker.record(made_room=False, used=1)
    assert not breaker.open
    breaker.record(made_room=False, used=1)
    assert breaker.open
    breaker.reset()
    assert not breaker.open


def test_an_open_breaker_allows_one_try_when_much_was_said_since() -> None:
    breaker = CompressionBreaker()
    for _ in range(2):
        breaker.record(made_room=False, used=1000)
    breaker.allow_retry(1099, worth=100)
    assert breaker.open
    breaker.allow_retry(1100, worth=100)
    assert not breaker.open
    breaker.record(made_room=False, used=1100)
    assert breaker.open
    breaker.record(made_room=True, used=500)
    assert not breaker.open


def test_a_fresh_breaker_is_closed_and_a_retry_means_nothing_to_it() -> None:
    breaker = CompressionBreaker()
    breaker.allow_retry(10**9, worth=1)
    assert not breaker.open
    breaker.record(made_room=False, used=1)
    assert not breaker.open


def test_room_in_between_starts_the_count_anew() -> None:
    breaker = CompressionBreaker()
    for made_room in (False, True, False):
        breaker.record(made_room=made_room, used=1)
        assert not breaker.open
    breaker.record(made_room=False, used=1)
    assert breaker.open
