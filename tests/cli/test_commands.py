"""The `ollm` command: help, families, mistyped names and completion."""

import subprocess
import sys

import pytest

from ollm.cli.command_table import COMMANDS
from tests.cli.command import SCRIPT, ollm

HEAVY = ("asyncio", "msgspec", "rich", "prompt_toolkit", "ruamel", "httpx2", "h11", "sqlite3", "logging")


def imported_by(arguments: str) -> set[str]:
    """The modules that one run of the command imported."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: sys.stderr.write('\\n'.join(sys.modules)))\n"
        f"sys.argv = {[SCRIPT, *arguments.split()]!r}\n"
        "exec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines())


def test_help_imports_click_and_none_of_the_heavy_libraries() -> None:
    modules = imported_by("--help")

    assert "click" in modules
    assert not {name for name in modules if name.split(".")[0] in HEAVY}


def test_help_lists_every_family_with_a_sentence() -> None:
    shown = ollm("--help").stdout

    assert all(f"  {name}" in shown for name in COMMANDS)


@pytest.mark.parametrize("family", sorted(COMMANDS))
def test_a_family_says_what_each_of_its_commands_does_without_breaking_off(family: str) -> None:
    shown = ollm(family, "--help").stdout

    assert not [line for line in shown.splitlines()[1:] if line.endswith("...")]


def test_help_can_be_asked_for_in_words() -> None:
    assert ollm("help").stdout == ollm("--help").stdout
    assert ollm("help", "config").stdout == ollm("config", "--help").stdout


def test_a_mistyped_command_is_answered_with_the_nearest_one() -> None:
    done = ollm("sesions", "list")

    assert done.returncode == 2
    assert "did you mean sessions?" in done.stderr
    assert done.stdout == ""


def test_the_shell_completes_the_names_of_the_families() -> None:
    done = ollm(_OLLM_COMPLETE="bash_complete", COMP_WORDS="ollm se", COMP_CWORD="1")

    assert done.stdout.split() == ["plain,sessions"]
