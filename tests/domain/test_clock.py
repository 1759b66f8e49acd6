"""Times on disk and on the wire."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.clock import format_stamp, make_id, parse_stamp, to_epoch_ms

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1), timezones=ZONES))  # noqa: DTZ001
def test_a_stamp_is_utc_with_milliseconds_and_reads_back_to_the_millisecond(moment: datetime) -> None:
    text = format_stamp(moment)

    assert len(text) == len("2026-01-27T10:00:00.000Z")
    assert text.endswith("Z")
    assert abs(parse_stamp(text) - moment) < timedelta(milliseconds=1)
    assert parse_stamp(text) <= moment


def test_a_whole_second_has_three_zeros() -> None:
    assert format_stamp(datetime(2026, 1, 27, 10, tzinfo=UTC)) == "2026-01-27T10:00:00.000Z"


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse_stamp("2026-01-27T10:00:00") == datetime(2026, 1, 27, 10, tzinfo=UTC)
    assert parse_stamp("2026-01-27T12:00:00+02:00") == datetime(2026, 1, 27, 10, tzinfo=UTC)


def test_epoch_milliseconds_are_whole_numbers() -> None:
    assert to_epoch_ms(datetime(1970, 1, 1, 0, 0, 1, 500_900, tzinfo=UTC)) == 1500


def test_no_two_ids_are_alike() -> None:
    assert len({make_id() for _ in range(1000)}) == 1000
