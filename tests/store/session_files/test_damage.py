"""What a reader could not use, gathered while it reads, told in one sentence."""

import time

import pytest

from ollm.store.session_files.damage import (
    FIND_SECONDS,
    LOADING_SECONDS,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NOTES,
    DamageFoundError,
    DamageReport,
    StrictDamageReport,
)


def test_nothing_noted_is_nothing_wrong() -> None:
    report = DamageReport()

    assert (report.text, report.lost, report.too_large, report.size) == (None, 0, False, 0)
    assert report.is_late(1) is False


def test_the_limits_are_those_the_documents_promise() -> None:
    assert (MAX_BYTES, MAX_DEPTH, MAX_NOTES) == (500_000_000, 100, 5)


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        (0, "torn"),
        (1, "torn; bad line (1 entry could not be read)"),
        (2, "torn; bad line (2 entries could not be read)"),
    ],
)
def test_the_sentence_counts_what_was_lost(lost: int, text: str) -> None:
    report = DamageReport()
    report.note("torn")
    for _ in range(lost):
        report.count_lost_entry("bad line")

    assert report.text == text
    assert not report.too_large


def test_a_few_notes_are_kept_and_each_once_while_all_losses_count() -> None:
    report = DamageReport()
    for number in range(MAX_NOTES + 3):
        report.count_lost_entry(f"line {number}")
        report.count_lost_entry(f"line {number}")

    assert report.notes == [f"line {number}" for number in range(MAX_NOTES)]
    assert report.lost == 2 * (MAX_NOTES + 3)


def test_a_refusal_comes_first_and_once() -> None:
    report = DamageReport()
    report.note("torn")
    report.refuse("too large")
    report.refuse("too large")

    assert report.text == "too large; torn"
    assert report.too_large


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 bytes"), (999_999, "999999 bytes"), (1_000_000, "1 MB"), (12_900_000, "12 MB")]
)
def test_what_is_nested_too_deep_is_refused_with_its_size(size: int, shown: str) -> None:
    report = DamageReport()
    report.size = size
    report.refuse_depth()

    assert report.text == f"too large to read ({shown}, nested deeper than {MAX_DEPTH} levels)"
    assert report.too_large


def test_what_is_whole_is_never_late() -> None:
    assert not DamageReport(patience=0).is_late(7)


def test_what_is_damaged_is_late_when_its_time_is_over() -> None:
    report = DamageReport(patience=0)
    report.note("torn")

    assert report.is_late(1024)
    assert report.text == "the file takes too long to read; entries after 1024 are not shown; torn"
    assert report.too_large


def test_patience_and_more_time_put_the_end_off() -> None:
    patient, extended = DamageReport(patience=1000), DamageReport(patience=0)
    extended.extend_time(1000)
    for report in (patient, extended):
        report.note("torn")
        assert not report.is_late(1)
        assert not report.too_large


def test_the_time_to_find_entries_is_counted_from_now() -> None:
    begun = time.process_time()
    usual, report = DamageReport(), DamageReport(patience=2)

    assert begun + FIND_SECONDS <= usual.find_until <= time.process_time() + FIND_SECONDS
    assert begun + 2 * FIND_SECONDS <= report.find_until <= time.process_time() + 2 * FIND_SECONDS
    assert LOADING_SECONDS > FIND_SECONDS


@pytest.mark.parametrize("tell", ["note", "refuse", "count_lost_entry"])
def test_a_strict_report_ends_the_reading_at_the_first_thing(tell: str) -> None:
    with pytest.raises(DamageFoundError, match=r"^what was found$"):
        getattr(StrictDamageReport(), tell)("what was found")


def test_a_strict_report_ends_the_reading_at_depth_too() -> None:
    with pytest.raises(DamageFoundError):
        StrictDamageReport().refuse_depth()
