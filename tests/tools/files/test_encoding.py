"""Bytes of a file as text, and back exactly."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.tools.files.encoding import Encoding, detect_encoding, detect_newline

UTF16 = Encoding(name="utf-16-le")


@pytest.mark.parametrize(
    ("data", "name", "mark", "label"),
    [
        (b"", "utf-8", b"", ""),
        (b"plain", "utf-8", b"", ""),
        ("ä€😀".encode(), "utf-8", b"", ""),
        (codecs.BOM_UTF8 + b"x", "utf-8", codecs.BOM_UTF8, "utf-8 with byte order mark"),
        (
            codecs.BOM_UTF16_LE + "x".encode("utf-16-le"),
            "utf-16-le",
            codecs.BOM_UTF16_LE,
            "utf-16-le with byte order mark",
        ),
        (
            codecs.BOM_UTF16_BE + "x".encode("utf-16-be"),
            "utf-16-be",
            codecs.BOM_UTF16_BE,
            "utf-16-be with byte order mark",
        ),
        (
            codecs.BOM_UTF32_LE + "x".encode("utf-32-le"),
            "utf-32-le",
            codecs.BOM_UTF32_LE,
            "utf-32-le with byte order mark",
        ),
        (
            codecs.BOM_UTF32_BE + "x".encode("utf-32-be"),
            "utf-32-be",
            codecs.BOM_UTF32_BE,
            "utf-32-be with byte order mark",
        ),
        ("plain text".encode("utf-16-le"), "utf-16-le", b"", "utf-16-le"),
        ("plain text".encode("utf-16-be"), "utf-16-be", b"", "utf-16-be"),
        ("Grüße aus Köln, schöne Straße".encode("latin-1"), "cp1252", b"", "cp1252"),
    ],
)
def test_an_encoding_is_known_named_and_taken_back_exactly(data: bytes, name: str, mark: bytes, label: str) -> None:
    found = detect_encoding(data)

    assert found == Encoding(name=name, mark=mark)
    assert found.label == label
    assert found.encode(found.decode(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\x7fELF\0\0\0",
        bytes(range(256)),
        b"a\0b\0c\0",  # too short to be sure of
        codecs.BOM_UTF8 + b"a\0b",
        ("plain text" * 3).encode("utf-16-le")[:-1],
        b"\xff\x01\x02\x03" * 20,
    ],
)
def test_what_is_no_text_is_none(data: bytes) -> None:
    assert detect_encoding(data) is None


def test_utf8_with_a_few_bytes_spoilt_is_shown_but_not_written_back() -> None:
    data = "viele schöne Wörter für äußere Größe".encode() + b"\xff"

    found = detect_encoding(data)

    assert found == Encoding(exact=False)
    assert found.label == "utf-8 with invalid bytes"
    assert found.decode(data).endswith("Größe\ufffd")


def test_a_mark_before_spoilt_bytes_still_names_the_encoding() -> None:
    data = codecs.BOM_UTF16_LE + b"a\0b"

    found = detect_encoding(data)

    assert found == Encoding(name="utf-16-le", mark=codecs.BOM_UTF16_LE, exact=False)
    assert found.label == "utf-16-le with invalid bytes"


def test_a_sample_may_be_cut_inside_a_character() -> None:
    data = "a€".encode()[:-1]

    assert detect_encoding(data, whole=False) == Encoding()
    assert detect_encoding(data) != Encoding()


def test_a_character_an_encoding_does_not_have_is_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        Encoding(name="cp1252").encode("漢")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_utf8_text_is_always_known(text: str) -> None:
    found = detect_encoding(text.encode())

    assert found is not None
    assert found.encode(found.decode(text.encode())) == text.encode()


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a\n", "\n"), ("a\r\n", "\r\n"), ("a\r\nb\n", "\n"), ("a\r\nb\r\n", "\r\n"), ("a\r", "\n")],
)
def test_crlf_is_the_line_end_only_where_every_line_has_it(text: str, newline: str) -> None:
    assert detect_newline(text) == newline


@pytest.mark.parametrize(("good", "utf8"), [(9, True), (8, False)])
def test_how_much_must_decode_well_for_spoilt_utf8(good: int, utf8: bool) -> None:
    found = detect_encoding(b"some plain words " + "ä".encode() * good + b" \xff \xfe")

    assert (found == Encoding(exact=False)) is utf8
