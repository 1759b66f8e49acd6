"""Pastes and attached files: from what was typed to what is sent."""

from pathlib import Path

import pytest

from ollm.cli.screen.composing import MAX_TEXT_BYTES, Pastes, collect_mentions, make_attachment, read_file
from ollm.runtime.mentions import looks_like_path, strip_punctuation


def test_a_paste_is_folded_and_sent_whole_even_when_it_holds_a_chip() -> None:
    pastes = Pastes()
    short = "one\ntwo"
    first = pastes.fold("[pasted 9 lines #2]\n" * 9)
    second = pastes.fold("x\n" * 9)

    assert pastes.fold(short) == short
    whole = "a " + "[pasted 9 lines #2]\n" * 9 + " b " + "x\n" * 9
    assert pastes.unfold(f"a {first} b {second}") == whole


def test_files_are_attached_by_name_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "two words.txt").write_text("spaced")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "in.py").touch()
    text = 'see @a.txt. and @"two words.txt", @b.bin @p.png @dir me@a.txt @missing'

    found, problems = collect_mentions(text, tmp_path, read_file)

    assert [attached.name for attached in found] == ["a.txt", "two words.txt", "p.png", "dir/ (1 file)"]
    assert found[2].image is not None
    assert found[2].image.media_type == "image/png"
    assert [problem.partition(" was")[0] for problem in problems] == ["@b.bin"]
    assert (found[3].name, found[3].text) == ("dir/ (1 file)", "in.py")


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("x\n" * 7, False),
        ("x\n" * 8, True),
        ("x\n" * 7 + "x", True),
        ("x" * 1199, False),
        ("x" * 1200, True),
        ("", False),
    ],
)
def test_only_long_pastes_are_folded(text: str, folded: bool) -> None:
    assert (Pastes().fold(text) != text) is folded


def test_chips_are_numbered_and_found_at_the_end() -> None:
    pastes = Pastes()
    assert pastes.unfold("as it is") == "as it is"
    first, second = pastes.fold("a\n" * 9), pastes.fold("b\n" * 10)

    assert (first, second) == ("[pasted 9 lines #1]", "[pasted 10 lines #2]")
    assert pastes.find_chip_at_end(f"see {second}") == second
    assert pastes.find_chip_at_end(f"{second} ") == ""
    assert pastes.fold("x" * 1200) == "[pasted 1 line #3]"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("src/a.py", True), ("a.py", True), ("alice", False), ("alice.", False), ("..", False), ("", False)],
)
def test_a_name_with_a_slash_or_dot_was_meant_as_a_file(name: str, meant: bool) -> None:
    assert looks_like_path(name) is meant


def test_a_name_at_the_end_of_a_sentence_goes_without_its_stop(tmp_path: Path) -> None:
    (tmp_path / "odd!").touch()

    assert strip_punctuation("a.txt.", tmp_path) == "a.txt"
    assert strip_punctuation("a.txt),", tmp_path) == "a.txt"
    assert strip_punctuation("odd!", tmp_path) == "odd!"


def test_a_missing_file_is_said_and_a_name_is_not(tmp_path: Path) -> None:
    found, problems = collect_mentions("@gone.py @alice mail@x.py (@src/b)", tmp_path, read_file)

    assert found == []
    assert problems == ["@gone.py was not attached: no such file", "@src/b was not attached: no such file"]


def test_a_file_is_attached_once_and_a_long_one_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * MAX_TEXT_BYTES)
    (tmp_path / "b.txt").write_bytes(b"x" * (MAX_TEXT_BYTES + 1))
    (tmp_path / "c.txt").write_bytes(b"\xff")
    found, problems = collect_mentions("@a.txt @a.txt @b.txt @c.txt", tmp_path, read_file)

    assert [(each.name, len(each.text)) for each in found] == [
        ("a.txt", 200_000),
        ("b.txt (truncated)", 200_000),
        ("c.txt", 1),
    ]
    assert found[2].text == "\ufffd"
    assert problems == []


@pytest.mark.parametrize(
    ("suffix", "kind"), [(".png", "png"), (".JPG", "jpeg"), (".jpeg", "jpeg"), (".gif", "gif"), (".webp", "webp")]
)
def test_pictures_go_by_their_suffix(tmp_path: Path, suffix: str, kind: str) -> None:
    (tmp_path / f"p{suffix}").write_bytes(b"data")
    found = make_attachment("p", tmp_path / f"p{suffix}", read_file)

    assert found.image is not None
    assert (found.image.media_type, found.image.data) == (f"image/{kind}", "ZGF0YQ==")


def test_what_cannot_be_attached_says_why(tmp_path: Path) -> None:
    with (tmp_path / "big.png").open("wb") as file:
        file.truncate(10_000_001)
    (tmp_path / "b.bin").write_bytes(b"a\0b")
    (tmp_path / "late.txt").write_bytes(b"a" * 8192 + b"\0")
    found, problems = collect_mentions("@big.png @b.bin @late.txt", tmp_path, read_file)

    assert [each.name for each in found] == ["late.txt"]
    assert problems == [
        "@big.png was not attached: the image is larger than 10 MB",
        "@b.bin was not attached: not a text file",
    ]
    with (tmp_path / "fits.png").open("wb") as file:
        file.truncate(10_000_000)
    assert collect_mentions("@fits.png", tmp_path, read_file)[1] == []


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    def refuse(_path: Path, _most: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.txt").touch()
    assert collect_mentions("@a.txt", tmp_path, refuse)[1] == ["@a.txt was not attached: Permission denied"]
