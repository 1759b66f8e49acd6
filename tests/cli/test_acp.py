"""`ollm acp` as a command: its help, and what it says without its extra package."""

import subprocess
import sys
from pathlib import Path

from tests.cli.command import ollm


def test_the_help_says_where_to_set_it_up(tmp_path: Path) -> None:
    shown = ollm("acp", "--help", home=tmp_path)

    assert shown.returncode == 0
    assert "docs/editors.md" in shown.stdout


def test_without_the_extra_package_it_says_how_to_get_it(tmp_path: Path) -> None:
    script = "import sys; sys.modules['acp'] = None; from ollm.cli.entry import main; sys.exit(main(['acp']))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert found.returncode == 2
    assert "pip install 'ollm-cli[acp]'" in found.stderr
    assert found.stdout == ""


def test_an_empty_input_is_a_quiet_end(tmp_path: Path) -> None:
    ended = ollm("acp", home=tmp_path)

    assert (ended.returncode, ended.stdout) == (0, "")
