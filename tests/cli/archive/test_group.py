"""`ollm archive`: its commands can be found, and asking for help needs neither psycopg nor a server."""

import subprocess
import sys

from tests.cli.command import ollm


def test_every_command_stands_in_the_help() -> None:
    said = ollm("archive", "--help").stdout

    for name in ("status", "setup", "push", "list", "search", "pull", "forget"):
        assert f"  {name}" in said


def test_nothing_of_the_archive_is_imported_for_another_command() -> None:
    code = (
        "import sys; from ollm.cli.entry import main; main(['sessions', 'list']); main(['archive', '--help']);"
        "print([name for name in sys.modules if 'psycopg' in name or 'team_archive' in name])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
