"""`ollm acp` as a command: its help, and what it says without its extra package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ollm


def test_the_help_says_where_to_set_it_up(tmp_path: Path) -> None:
    shown = ollm("acp", "--help", home=tmp_path)

    assert shown.returncode == 0
    assert "docs/editors.md" in shown.stdout


def test_without_the_extra_package_it_says_how_to_get_it(tmp_path: Path) -> None:
    script = "import sys; sys.modules['acp'] = None; from ollm.cli.entry import main; sys.exit(main(['acp']))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert found.returncode == 2
    assert "[acp]'" in found.stderr
    assert "pip install '" in found.stderr
    assert found.stdout == ""


def test_an_output_that_cannot_be_written_is_a_quiet_end(tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n' * 3)
    with (tmp_path / "in").open() as source, Path("/dev/full").open("w") as target:
        ended = subprocess.run(
            [sys.executable, "-m", "ollm", "acp"],
            env={**os.environ, "OLLM_HOME": str(tmp_path)},
            stdin=source,
            stdout=target,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=180,
        )

    assert "Traceback" not in ended.stderr
    assert "internal error" not in ended.stderr


@pytest.mark.parametrize("given", ["", "\n", " \n\n"])
def test_an_empty_input_is_a_quiet_end(tmp_path: Path, given: str) -> None:
    ended = ollm("acp", home=tmp_path, stdin=given)

    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.parametrize("given", ["junk\n", "junk", "\n[]\n{}\n"])
def test_an_input_without_a_message_is_answered_and_ends(tmp_path: Path, given: str) -> None:
    ended = ollm("acp", home=tmp_path, stdin=given)

    assert ended.returncode == 0
    assert all("error" in json.loads(line) for line in ended.stdout.splitlines())
    assert len(ended.stdout.splitlines()) == len(given.split())
