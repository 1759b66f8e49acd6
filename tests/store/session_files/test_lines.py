"""A file's lines, read once and forward; long ones are passed over, holes skipped."""

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.store.session_files import lines
from ollm.store.session_files.lines import find_data_end, iter_lines, skip_hole

MEGABYTE = 1 << 20


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONG_LINE_BYTES", 8)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_lines_come_with_their_places_and_the_last_may_lack_its_end(tmp_path: Path, kind: str) -> None:
    data = b"one\n\ntwo\nrest"
    with write(tmp_path / "f", data).open("rb") if kind == "file" else io.BytesIO(data) as file:
        assert list(iter_lines(file)) == [(0, 4, b"one\n"), (4, 5, b"\n"), (5, 9, b"two\n"), (9, 13, b"rest")]
        assert list(iter_lines(file, 5)) == [(5, 9, b"two\n"), (9, 13, b"rest")]
        assert file.tell() == 0


def test_several_read_one_file_side_by_side(tmp_path: Path) -> None:
    with write(tmp_path / "f", b"a\nb\n").open("rb") as file:
        assert [one[2] + other[2] for one, other in zip(iter_lines(file), iter_lines(file, 2), strict=False)] == [
            b"a\nb\n"
        ]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_long_line_is_held_only_where_it_may_be_an_entry(tmp_path: Path, kind: str) -> None:
    data = b"{" + b"x" * 30 + b"\n" + b"y" * 30 + b"\nend\n"
    with write(tmp_path / "f", data).open("rb") if kind == "file" else io.BytesIO(data) as file:
        assert list(iter_lines(file)) == [(0, 32, data[:32]), (32, 63, b"y" * 8), (63, 67, b"end\n")]
        assert next(iter_lines(file, longest=32)) == (0, 32, data[:32])
        assert next(iter_lines(file, longest=31)) == (0, 32, data[:8])


@pytest.mark.usefixtures("short")
def test_a_line_of_just_the_length_is_whole(tmp_path: Path) -> None:
    with write(tmp_path / "f", b"1234567\nx\n").open("rb") as file:
        assert list(iter_lines(file)) == [(0, 8, b"1234567\n"), (8, 10, b"x\n")]


@pytest.mark.usefixtures("short")
def test_beyond_the_limit_no_line_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 20)
    with write(tmp_path / "f", b"z" * 100).open("rb") as file:
        assert next(iter_lines(file)) == (0, 24, b"z" * 8)


@given(st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=8))
def test_together_the_lines_are_the_file(parts: list[bytes]) -> None:
    data = b"\n".join(parts)
    found = list(iter_lines(io.BytesIO(data)))

    assert b"".join(line for _, _, line in found) == data
    assert all(data[start:end] == line for start, end, line in found)


def make_sparse(path: Path) -> int:
    """Data, a hole of 8 MiB, data, a hole of 8 MiB; where the second data ends."""
    with path.open("wb") as file:
        file.write(b"a" * 4096)
        file.seek(8 * MEGABYTE)
        file.write(b"b" * 4096)
        file.truncate(16 * MEGABYTE)
    return 8 * MEGABYTE + 4096


def test_holes_are_skipped_and_the_end_of_data_is_found(tmp_path: Path) -> None:
    end = make_sparse(tmp_path / "f")
    with (tmp_path / "f").open("rb") as file:
        assert skip_hole(file.fileno(), 0) == 0
        assert skip_hole(file.fileno(), MEGABYTE) == 8 * MEGABYTE
        assert skip_hole(file.fileno(), end + MEGABYTE) == 16 * MEGABYTE
        assert find_data_end(file.fileno()) == end
        assert file.tell() == 0


def test_a_line_with_a_hole_in_it_is_one_line(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.write(b"start")
        file.seek(64 * MEGABYTE)
        file.write(b"end\nnext\n")
    with (tmp_path / "f").open("rb") as file:
        found = list(iter_lines(file))

    assert [(start, end) for start, end, _ in found] == [(0, 64 * MEGABYTE + 4), (64 * MEGABYTE + 4, 64 * MEGABYTE + 9)]
    assert found[0][2].startswith(b"start\0")
    assert len(found[0][2]) == MEGABYTE
    assert found[1][2] == b"next\n"


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 5000])
def test_without_holes_data_ends_with_the_file(tmp_path: Path, data: bytes) -> None:
    with write(tmp_path / "f", data).open("rb") as file:
        assert find_data_end(file.fileno()) == len(data)


def test_after_very_many_holes_the_rest_counts_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_EXTENTS", 1)
    make_sparse(tmp_path / "f")
    with (tmp_path / "f").open("rb") as file:
        assert find_data_end(file.fileno()) == 16 * MEGABYTE


def test_where_the_system_cannot_say_nothing_is_skipped(tmp_path: Path) -> None:
    make_sparse(tmp_path / "f")
    with (tmp_path / "f").open("rb") as file:
        descriptor = os.dup(file.fileno())
    try:
        with pytest.MonkeyPatch.context() as patch:

            def refuse(*_: object) -> int:
                raise OSError(2, "no /proc")

            patch.setattr(os, "open", refuse)
            assert skip_hole(descriptor, MEGABYTE) == MEGABYTE
            assert find_data_end(descriptor) == 16 * MEGABYTE
    finally:
        os.close(descriptor)
