"""The file of what was typed before."""

from pathlib import Path

from ollm.cli.screen.history import MAX_HISTORY_LINES, MAX_INPUT_CHARACTERS, ScreenInputHistory


def test_typed_lines_are_kept_with_their_session_and_damage_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = ScreenInputHistory(file, lambda: "s1")
    history.store_string("first\nline")
    history.store_string("second")
    with file.open("ab") as stream:
        stream.write(b'not json\n[1]\n{"text": 5}\n')

    assert list(ScreenInputHistory(file, lambda: None).load_history_strings()) == ["second", "first\nline"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_only_the_newest_lines_and_so_many_letters_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "history"
    history = ScreenInputHistory(file, lambda: None)
    history.store_string("x" * (MAX_INPUT_CHARACTERS + 5))
    assert len(next(iter(history.load_history_strings()))) == 20_000
    file.write_text("".join(f'{{"text": "{n}"}}\n' for n in range(MAX_HISTORY_LINES + 5)))
    found = list(history.load_history_strings())

    assert len(found) == 2000
    assert (found[0], found[-1]) == ("2004", "5")


def test_a_file_that_is_not_there_or_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    history = ScreenInputHistory(tmp_path / "file" / "history", lambda: "s")
    assert list(history.load_history_strings()) == []
    (tmp_path / "file").write_text("in the way")
    history.store_string("lost")
    assert list(history.load_history_strings()) == []


def test_the_session_is_kept_beside_and_half_letters_are_no_error(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history"
    history = ScreenInputHistory(file, lambda: "s1")
    history.store_string("a\ud800")
    history.store_string("")

    assert '"session": "s1"' in file.read_text().splitlines()[0]
    assert len(list(history.load_history_strings())) == 1
    assert file.parent.stat().st_mode & 0o777 == 0o700
