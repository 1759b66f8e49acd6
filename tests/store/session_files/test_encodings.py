"""Session files that another program saved in another encoding are read as the UTF-8 they were before."""

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.store.session_files import encodings
from ollm.store.session_files.encodings import convert_to_utf8, detect_encoding

TEXT = '{"sessionId":"ä€😀"}\n'
MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


def convert(data: bytes, directory: Path) -> bytes | None:
    path = directory / "file"
    path.write_bytes(data)
    with path.open("rb") as file:
        converted = convert_to_utf8(file)
    if converted is None:
        return None
    with converted:
        converted.seek(0)
        return converted.read()


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_names_the_encoding_and_is_left_out(name: str, tmp_path: Path) -> None:
    data = MARKS[name] + TEXT.encode(name)

    assert detect_encoding(data[:4]) == (name, len(MARKS[name]))
    assert convert(data, tmp_path) == TEXT.encode()


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_without_a_mark_the_brace_and_its_zeros_name_it(name: str, tmp_path: Path) -> None:
    data = TEXT.encode(name)

    assert detect_encoding(data[:4]) == (name, 0)
    assert convert(data, tmp_path) == TEXT.encode()


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"[1]", b"\xff", b"\0\0\0\0", TEXT.encode()])
def test_plain_utf8_and_what_is_none_of_them_stay_as_they_are(data: bytes, tmp_path: Path) -> None:
    assert detect_encoding(data[:4]) is None
    assert convert(data, tmp_path) is None


def test_a_character_cut_off_is_replaced(tmp_path: Path) -> None:
    assert convert(TEXT.encode("utf-16-le")[:-1], tmp_path) == TEXT[:-1].encode() + "\ufffd".encode()


def test_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    lone = codecs.BOM_UTF16_LE + '{"a":"'.encode("utf-16-le") + b"\x00\xd8" + '"}'.encode("utf-16-le")
    assert convert(lone, tmp_path) == '{"a":"\ufffd"}'.encode()


def test_no_more_than_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "MAX_BYTES", 8)
    monkeypatch.setattr(encodings, "_CHUNK_BYTES", 4)

    assert convert(TEXT.encode("utf-16-le"), tmp_path) == TEXT[:4].encode()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.sampled_from(sorted(MARKS)), st.integers(1, 9))
def test_whatever_the_chunks_the_text_comes_out(text: str, name: str, chunk: int) -> None:
    import tempfile

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(encodings, "_CHUNK_BYTES", chunk)
        assert convert(MARKS[name] + text.encode(name), Path(directory)) == text.encode()
