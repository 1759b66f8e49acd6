"""The person's own editor, as `ollm config edit` opens it."""

from pathlib import Path

import pytest

from ollm.cli.config import find_editor
from ollm.domain.errors import UsageError
from tests.cli.command import ollm


def test_visual_comes_before_editor_and_an_installed_one_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_editor({"VISUAL": "code -w", "EDITOR": "vi"}) == "code -w"
    assert find_editor({"VISUAL": "", "EDITOR": "vi"}) == "vi"
    with pytest.raises(UsageError, match="No editor found"):
        find_editor({})
    (tmp_path / "vi").touch(mode=0o755)
    assert find_editor({}) == "vi"


def test_the_editor_gets_the_file_and_what_is_wrong_with_it_is_said(tmp_path: Path) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\necho "$2: {maxTurns: 7}" > "$3"\n')
    editor.chmod(0o755)
    home = tmp_path / "home"

    good = ollm("config", "edit", home=home, VISUAL="", EDITOR=f"'{editor}' -n loopDetection")
    bad = ollm("config", "edit", home=home, VISUAL=f"'{editor}' -n lopDetection")
    none = ollm("config", "edit", home=home, VISUAL="/nonexistent/editor")

    assert (good.returncode, good.stdout) == (0, "Configuration OK.\n")
    assert (home / "config.yaml").stat().st_mode & 0o777 == 0o600
    assert (bad.returncode, "lopDetection" in bad.stdout) == (2, True)
    assert (none.returncode, "Set EDITOR" in none.stderr) == (2, True)
