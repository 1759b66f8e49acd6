"""Where the entries of a document of ours are, found by halving."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.store.session_files import layout
from ollm.store.session_files.journal import encode_json
from ollm.store.session_files.layout import MIDDLE
from ollm.store.session_files.sections import DocumentSections, OddLayoutError, read_number
from tests.store.sessions.support import AT


def document(messages: list[tuple[int, str, int]]) -> bytes:
    """Messages by number, role and length, every assistant's with a call."""
    lines = [{"role": role, "parts": [{"type": "text", "text": "x" * size}], "timestamp": AT, "id": number}
             for number, role, size in messages]  # fmt: skip
    calls = [{"id": f"c{number}", "name": "ls", "args": {}, "timestamp": AT, "messageId": number}
             for number, role, _ in messages if role == "assistant"]  # fmt: skip
    return b"".join(layout.iter_document({"sessionId": "s"}, map(encode_json, lines), map(encode_json, calls)))


@st.composite
def numbered(draw) -> list[tuple[int, str, int]]:
    gaps = draw(st.lists(st.integers(1, 3), max_size=60))
    shape = st.tuples(st.sampled_from(["user", "assistant"]), st.integers(0, 300))
    return [(sum(gaps[: place + 1]), *draw(shape)) for place in range(len(gaps))]


def expected_beginning(messages: list[tuple[int, str, int]], after: int, least: int) -> int:
    """Before the last question that has all that is wanted behind it; 0 where that is near the beginning."""
    wanted = min(after, messages[-1][0] - least) if messages else 0
    if 2 * wanted <= least:
        return 0
    return max((number - 1 for number, role, _ in messages if role == "user" and number <= wanted + 1), default=0)


@settings(max_examples=150)
@given(messages=numbered(), after=st.integers(0, 150), least=st.integers(1, 20))
def test_the_places_of_entries_are_found_whatever_their_lengths(messages, after: int, least: int):
    content = document(messages)
    sections = DocumentSections(io.BytesIO(content), block=128)

    start, end = sections.find_messages(after, after + 20)
    found = [line for line in content[start:end].split(b"\n") if line]
    assert len(found) == len([number for number, _, _ in messages if after < number < after + 20])
    start, end = sections.find_calls(after)
    assert content[start:end].count(b"messageId") == len([n for n, role, _ in messages if n > after and role != "user"])

    assert sections.find_beginning(after, least) == expected_beginning(messages, after, least)


@pytest.mark.parametrize("cut", [1, 3, 40, 300])
def test_a_document_cut_short_is_no_layout_of_ours(cut: int):
    with pytest.raises(OddLayoutError):
        DocumentSections(io.BytesIO(document([(1, "user", 50), (2, "assistant", 50)])[:-cut]))


def section(*messages: tuple[int, str, int], block: int = 64) -> tuple[bytes, DocumentSections]:
    content = document(list(messages))
    return content, DocumentSections(io.BytesIO(content), block=block)


@pytest.mark.parametrize("block", [1, 64, 1 << 16])
def test_messages_and_calls_between_two_numbers(block: int) -> None:
    content, sections = section(
        *((number, "assistant" if number % 2 else "user", 10) for number in range(1, 21)), block=block
    )

    def numbers(span: tuple[int, int]) -> list[int]:
        return [read_number(line) for line in content[slice(*span)].splitlines()]

    assert numbers(sections.find_messages(0)) == list(range(1, 21))
    assert numbers(sections.find_messages(5, 9)) == [6, 7, 8]
    assert numbers(sections.find_messages(20)) == []
    assert numbers(sections.find_messages(18)) == [19, 20]
    assert content[slice(*sections.find_calls(15))].count(b'"id"') == 2
    assert content[slice(*sections.find_calls(2, 6))].count(b'"id"') == 2
    assert content[sections.middle :].startswith(MIDDLE)
    assert sections.list_newest_calls()[-1] == "c19"


def test_the_beginning_is_a_message_of_the_users_with_enough_behind_it() -> None:
    _, sections = section(
        (1, "user", 5),
        (2, "assistant", 5),
        (3, "assistant", 5),
        (4, "user", 5),
        (5, "assistant", 5),
        (6, "assistant", 5),
    )

    assert sections.find_beginning(6, 1) == 3
    assert sections.find_beginning(6, 2) == 3
    assert sections.find_beginning(6, 3) == 3
    assert sections.find_beginning(6, 4) == 0
    assert sections.find_beginning(2, 1) == 0
    assert section()[1].find_beginning(5, 1) == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"id":1}', b'"id":"one"}'),
        (b'"id":1}', b'"id":0}'),
        (b'],"toolCalls":[\n', b"]\n"),
        (b"]}\n", b"]}"),
        (b"]}\n", b"]}\n\n"),
    ],
)
def test_a_line_that_is_not_as_we_write_it_is_noticed(before: bytes, after: bytes) -> None:
    content = document([(1, "user", 5), (2, "user", 5)]).replace(before, after)

    with pytest.raises(OddLayoutError):
        DocumentSections(io.BytesIO(content)).find_messages(1)


@pytest.mark.parametrize("content", [b"", b"\n", b"x\n]}\n", b'{"a":1}\n]}\n'])
def test_what_is_no_document_of_ours_is_noticed(content: bytes) -> None:
    with pytest.raises(OddLayoutError):
        DocumentSections(io.BytesIO(content))
