"""Files that a message names with `@`."""

from pathlib import Path

from ollm.runtime.mentions import find_mentions, is_there, looks_like_path


def test_names_are_found_at_the_beginning_of_words_once_each(tmp_path: Path) -> None:
    (tmp_path / "odd.").touch()
    text = 'see @a.py, (@b/c) and @"two words.txt" not me@home nor @a.py; @odd. @end.'

    assert find_mentions(text, tmp_path) == ["a.py", "b/c", "two words.txt", "odd.", "end"]
    assert find_mentions("no at sign", tmp_path) == []


def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    assert find_mentions(f"@{'n' * 5000}", tmp_path) == ["n" * 5000]
    assert not is_there(tmp_path / ("n" * 5000))
    assert not is_there(tmp_path / "a\0b")
    assert [name for name in ("src/a", "a.py", "alice", "...") if looks_like_path(name)] == ["src/a", "a.py"]
