"""Where the entries of a document of ours are, found by halving."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.store.session_files import layout
from ollm.store.session_files.journal import encode_json
from ollm.store.session_files.sections import DocumentSections, OddLayoutError
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

    begin = sections.find_beginning(after, least)
    behind = [(number, role) for number, role, _ in messages if number > begin]
    assert begin == 0 or (begin <= after and behind[0][1] == "user" and behind[-1][0] - begin >= least)


@pytest.mark.parametrize("cut", [1, 3, 40, 300])
def test_a_document_cut_short_is_no_layout_of_ours(cut: int):
    with pytest.raises(OddLayoutError):
        DocumentSections(io.BytesIO(document([(1, "user", 50), (2, "assistant", 50)])[:-cut]))
