"""Pastes and attached files: from what was typed to what is sent."""

from pathlib import Path

from ollm.cli.screen.composing import Pastes, collect_mentions, read_file


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
    text = 'see @a.txt. and @"two words.txt", @b.bin @p.png @dir me@a.txt @missing'

    found, problems = collect_mentions(text, tmp_path, read_file)

    assert [attached.name for attached in found] == ["a.txt", "two words.txt", "p.png"]
    assert found[2].image is not None
    assert found[2].image.media_type == "image/png"
    assert [problem.partition(" was")[0] for problem in problems] == ["@b.bin", "@dir"]
