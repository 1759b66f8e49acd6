"""What ripgrep says in JSON, read into lines with their place."""

import base64
import json
from typing import Any

import pytest

from ollm.tools.search import matches
from ollm.tools.search.matches import MAX_COUNTED_MATCHES, FoundLine, MatchCollector


def record(
    kind: str, path: str = "a", text: str = "hit\n", number: int = 1, start: int | None = 0, **more: Any
) -> bytes:
    data = {
        "path": {"text": path},
        "lines": {"text": text},
        "line_number": number,
        "submatches": [] if start is None else [{"start": start}],
        **more,
    }
    return json.dumps({"type": kind, "data": data}).encode() + b"\n"


def collect(*chunks: bytes, wanted: tuple[str, ...] = ("a", "b")) -> MatchCollector:
    collector = MatchCollector(wanted)
    for chunk in chunks:
        collector.feed(chunk)
    return collector


def test_matches_and_lines_near_them_are_kept_by_file() -> None:
    found = collect(
        record("match"), record("context", text="near\n", number=2, start=None), record("match", "./b", number=7)
    )

    assert found.files == {
        "a": [FoundLine(1, "hit", True, True), FoundLine(2, "near", False, False)],
        "b": [FoundLine(7, "hit", True, True)],
    }
    assert (found.count, found.is_full, found.too_long) == (2, False, 0)


def test_it_does_not_matter_where_chunks_are_cut() -> None:
    data = record("match") + record("match", "b", "ä\r\n", 3)

    whole = collect(data)
    bytewise = collect(*(data[place : place + 1] for place in range(len(data))))

    assert whole.files == bytewise.files
    assert whole.files["b"] == [FoundLine(3, "ä", True, True)]


def test_a_match_over_lines_starts_with_the_first() -> None:
    found = collect(record("match", text="one\ntwo\n", number=4))

    assert found.files["a"] == [FoundLine(4, "one", True, True), FoundLine(5, "two", True, False)]
    assert found.count == 1


def test_files_that_were_not_asked_for_are_passed_over() -> None:
    assert collect(record("match", "c"), record("begin"), record("summary")).files == {}


def test_a_binary_file_is_named_and_its_lines_dropped() -> None:
    found = collect(
        record("match"),
        record("match", text="x\ny\n", number=2),
        record("match", "b"),
        record("end", binary_offset=5),
        record("end", "b", binary_offset=None),
        record("end", "never-matched", binary_offset=5),
    )

    assert (found.files.keys(), found.binary, found.count) == ({"b"}, {"a"}, 1)


def test_bytes_that_are_no_text_are_replaced_and_names_kept() -> None:
    name = base64.b64encode(b"\xff").decode()
    line = {
        "type": "match",
        "data": {"path": {"bytes": name}, "lines": {"bytes": name}, "line_number": 1, "submatches": []},
    }

    found = collect(json.dumps(line).encode() + b"\n", wanted=("\udcff",))
    assert found.files == {"\udcff": [FoundLine(1, "\ufffd", True, True)]}


@pytest.mark.parametrize(
    ("length", "start", "shown"),
    [
        (400, 0, "x" * 400),
        (401, 0, "x" * 400 + " … 1 character …"),
        (1000, 500, "… 380 characters … " + "x" * 400 + " … 220 characters …"),
        (1000, 999, "… 879 characters … " + "x" * 121),
        (1000, 5000, "… 880 characters … " + "x" * 120),
    ],
)
def test_a_long_line_is_cut_around_the_match(length: int, start: int, shown: str) -> None:
    [line] = collect(record("match", text="x" * length + "\n", start=start)).files["a"]

    assert line.text == shown


def test_a_record_that_is_far_too_long_is_counted_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_MAX_RECORD_BYTES", 300)
    found = collect(record("match", text="x" * 500 + "\n"), record("match", number=2))

    assert (found.too_long, found.count) == (1, 1)
    assert [line.number for line in found.files["a"]] == [2]


@pytest.mark.parametrize(("count", "full"), [(MAX_COUNTED_MATCHES - 1, False), (MAX_COUNTED_MATCHES, True)])
def test_far_more_than_anyone_reads_is_enough(count: int, full: bool) -> None:
    found = MatchCollector(["a"])
    found.count = count

    assert found.is_full is full
    assert MAX_COUNTED_MATCHES == 10_000


def test_empty_lines_are_no_records() -> None:
    assert collect(b"\n\n", record("match"), b"\n").count == 1
