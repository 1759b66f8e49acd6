"""T2: read_file, through dispatch."""

import tracemalloc
from pathlib import Path

import pytest

from ollm.config.settings import OutputSettings, ReadFileSettings, ToolSettings
from tests.covers import covers
from tests.tools.drive import Driver, content, error

LINES = "one\ntwo\nthree\nfour\n"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000049454e44ae426082")


def reader(workspace: Path, *, vision: bool = False, max_bytes: int = 10_485_760, chars: int = 30_000) -> Driver:
    settings = ToolSettings(read_file=ReadFileSettings(max_bytes=max_bytes), output=OutputSettings(max_chars=chars))
    return Driver(workspace, settings=settings, vision=vision)


@pytest.fixture
def drive(workspace: Path) -> Driver:
    (workspace / "a.txt").write_text(LINES, encoding="utf-8")
    return reader(workspace)


@covers("T2.1")
async def test_a_file_is_read_whole_and_as_it_is(drive: Driver) -> None:
    record = await drive("read_file", path="a.txt")

    assert content(record) == LINES
    assert record.result is not None
    assert record.result.return_display == "a.txt: 4 lines"


@covers("T2.2", "T2.3", "T2.4")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"startLine": 3}, "three\nfour\n"),
        ({"endLine": 2}, "one\ntwo\n"),
        ({"startLine": 2, "endLine": 3}, "two\nthree\n"),
        ({"startLine": 4, "endLine": 4}, "four\n"),
        ({"startLine": 4, "endLine": 99}, "four\n"),
        ({"startLine": 2, "endLine": 3, "lineNumbers": True}, "2\ttwo\n3\tthree\n"),
        ({"start_line": "2", "end_line": "2"}, "two\n"),
    ],
)
async def test_a_range_of_lines_is_read_both_ends_included(drive: Driver, wanted, expected: str) -> None:
    assert content(await drive("read_file", path="a.txt", **wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "kind", "said"),
    [
        ({"startLine": 0}, "ValidationError", ">= 1"),
        ({"startLine": -1}, "ValidationError", ">= 1"),
        ({"endLine": 0}, "ValidationError", ">= 1"),
        ({"startLine": 3, "endLine": 2}, "InvalidLineRange", "after endLine"),
        ({"startLine": 5}, "InvalidLineRange", "4 lines"),
        ({"startLine": 10**30}, "InvalidLineRange", "4 lines"),
        ({"startLine": "abc"}, "ValidationError", "whole number"),
        ({"startLine": 1.5}, "ValidationError", "whole number"),
    ],
)
async def test_ranges_that_make_no_sense(drive: Driver, wanted, kind: str, said: str) -> None:
    found, message = error(await drive("read_file", path="a.txt", **wanted))

    assert found == kind
    assert said in message


async def test_an_empty_file_is_empty_and_has_no_second_line(drive: Driver, workspace: Path) -> None:
    (workspace / "empty").write_bytes(b"")

    assert content(await drive("read_file", path="empty")) == ""
    assert content(await drive("read_file", path="empty", startLine=1, lineNumbers=True)) == ""
    assert error(await drive("read_file", path="empty", startLine=2))[0] == "InvalidLineRange"


@covers("T2.5", "T12.2")
async def test_a_missing_file_is_reported_by_name(drive: Driver) -> None:
    assert error(await drive("read_file", path="b.txt")) == ("FileNotFound", "b.txt does not exist.")


@covers("T2.6")
async def test_a_file_over_the_limit_is_not_read_whole_but_by_range(workspace: Path) -> None:
    (workspace / "big.log").write_text("".join(f"line {n}\n" for n in range(1, 10_001)), encoding="utf-8")
    drive = reader(workspace, max_bytes=1000)

    kind, message = error(await drive("read_file", path="big.log"))
    assert kind == "FileTooLarge"
    assert "startLine" in message

    assert content(await drive("read_file", path="big.log", startLine=9_999)) == "line 9999\nline 10000\n"
    assert content(await drive("read_file", path="big.log", startLine=2, endLine=3)) == "line 2\nline 3\n"
    assert "10,000 lines" in error(await drive("read_file", path="big.log", startLine=10_001))[1]


@covers("T2.6")
async def test_a_range_of_a_huge_log_is_read_in_flat_memory(workspace: Path) -> None:
    with (workspace / "huge.log").open("wb") as file:
        for _ in range(60):
            file.write(b"0123456789abcdef" * 65535 + b"0123456789abcde\n")
        file.truncate(200_000_000)
    drive = reader(workspace)
    tracemalloc.start()

    record = await drive("read_file", path="huge.log", startLine=50, endLine=50)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert content(record).startswith("0123456789abcdef")
    assert peak < 20_000_000


@covers("T2.7")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\x01\x02\x03", "binary data"),
        (PNG, "a PNG picture"),
        (b"\x7fELF" + bytes(100), "an executable"),
        (b"\x1f\x8b\x08\x00\x00\x00", "gzip data"),
    ],
)
async def test_a_binary_file_is_answered_in_a_sentence(drive: Driver, workspace: Path, data: bytes, words: str) -> None:
    (workspace / "x.bin").write_bytes(data)

    kind, message = error(await drive("read_file", path="x.bin"))

    assert kind == "BinaryFile"
    assert words in message
    assert f"{len(data):,} bytes" in message


async def test_a_picture_is_handed_to_a_model_that_can_see(workspace: Path) -> None:
    (workspace / "x.png").write_bytes(PNG)

    record = await reader(workspace, vision=True)("read_file", path="x.png")

    assert "a PNG picture" in content(record)
    assert record.result is not None
    assert [image.media_type for image in record.result.images] == ["image/png"]


@covers("T2.9", "T2.7")
@pytest.mark.parametrize(
    ("encoding", "label"),
    [
        ("utf-8", None),
        ("utf-8-sig", "utf-8 with byte order mark"),
        ("utf-16", "utf-16-le with byte order mark"),
        ("utf-32", "utf-32-le with byte order mark"),
        ("cp1252", "cp125"),
        ("shift_jis", "cp932"),
    ],
)
async def test_the_encoding_is_understood_and_told(drive: Driver, workspace: Path, encoding: str, label) -> None:
    text = (
        "日本語のテキストです。これは長い文章で、文字コードを判定します。\n"
        if encoding == "shift_jis"
        else "Grüße, schöne Welt über alles\n"
    )
    (workspace / "x.txt").write_bytes(text.encode(encoding))

    shown = content(await drive("read_file", path="x.txt"))

    assert shown.startswith(text)
    assert (shown == text) if label is None else ("[encoding: " in shown)
    if label and encoding != "shift_jis":
        assert label in shown


async def test_a_short_text_of_a_legacy_encoding_is_not_taken_for_wide_characters(drive: Driver, workspace: Path):
    (workspace / "x.txt").write_bytes("café".encode("latin-1"))

    shown = content(await drive("read_file", path="x.txt"))

    assert shown.startswith("café")


async def test_invalid_utf8_is_shown_and_said(drive: Driver, workspace: Path) -> None:
    (workspace / "x.txt").write_bytes("漢字かな交じり文\n".encode() + b"\xff broken\n")

    shown = content(await drive("read_file", path="x.txt"))

    assert "漢字" in shown
    assert "�" in shown
    assert "invalid bytes" in shown


async def test_crlf_and_escape_sequences_are_shown_plainly(drive: Driver, workspace: Path) -> None:
    (workspace / "x.txt").write_bytes(b"one\r\ntwo \x1b[31mred\x1b[0m\r\n")

    assert content(await drive("read_file", path="x.txt")) == "one\ntwo ␛[31mred␛[0m\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.txt", "link", "linked/outside.txt"])
async def test_outside_the_workspace_a_person_is_asked_first(drive: Driver, workspace: Path, path: str) -> None:
    (workspace.parent / "outside.txt").write_text("secret", encoding="utf-8")
    (workspace / "link").symlink_to("../outside.txt")
    (workspace / "linked").symlink_to("..")
    drive.person.approves = False

    record = await drive("read_file", path=path)

    assert record.status == "denied"
    assert drive.person.asked[0].locked
    assert "secret" not in str(record)

    drive.person.approves = True
    assert content(await drive("read_file", path=path))


@covers("T9.1", "T9.3")
async def test_ten_megabytes_on_one_line_are_cut_and_said(workspace: Path) -> None:
    (workspace / "x.txt").write_bytes(b"x" * 10_000_000)

    shown = content(await reader(workspace)("read_file", path="x.txt"))

    assert len(shown) < 30_000
    assert "line 1 of 1 is too long" in shown


@covers("T9.2", "T9.3")
async def test_a_long_file_ends_with_where_to_read_on(workspace: Path) -> None:
    (workspace / "x.txt").write_text("".join(f"{n}\n" for n in range(1, 5001)), encoding="utf-8")
    drive = reader(workspace)

    shown = content(await drive("read_file", path="x.txt"))
    assert shown.endswith("[lines 1 to 997 of 5,000 are shown; read on with startLine 998]")

    assert content(await drive("read_file", path="x.txt", startLine=998)).startswith("998\n999\n")
