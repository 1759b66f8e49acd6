"""The file of what was typed before."""

from pathlib import Path

from ollm.cli.screen.history import ScreenInputHistory


def test_typed_lines_are_kept_with_their_session_and_damage_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = ScreenInputHistory(file, lambda: "s1")
    history.store_string("first\nline")
    history.store_string("second")
    with file.open("ab") as stream:
        stream.write(b'not json\n[1]\n{"text": 5}\n')

    assert list(ScreenInputHistory(file, lambda: None).load_history_strings()) == ["second", "first\nline"]
    assert file.stat().st_mode & 0o777 == 0o600
