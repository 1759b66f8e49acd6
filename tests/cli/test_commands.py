"""The `ollm` command: help, families, mistyped names and completion."""

import subprocess
import sys

import pytest

from ollm.cli.commands import COMMANDS
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside

HEAVY = ("asyncio", "msgspec", "rich", "prompt_toolkit", "ruamel", "httpx2", "httptools", "sqlite3", "logging")


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


def test_the_shell_completes_the_names_of_the_families() -> None:
    done = ollm(_OLLM_COMPLETE="bash_complete", COMP_WORDS="ollm se", COMP_CWORD="1")

    assert done.stdout.split() == ["plain,sessions"]


def test_a_wrong_option_is_named_with_what_was_meant(inside: Inside) -> None:
    said = inside.fail("sessions", "list", "--jsn", code=2)
    assert "unknown option --jsn; did you mean --json?" in said
    assert "See `ollm sessions list --help`." in said
    assert said.startswith("Usage: ollm sessions list ")
    said = inside.fail("sessions", "clear", "--yess", code=2)
    assert "unknown option --yess.\n" in said
    assert "did you mean" not in said


def test_an_unknown_command_is_answered_with_the_nearest(inside: Inside) -> None:
    said = inside.fail("sesions", code=2)

    assert "unknown command 'sesions'; did you mean" in said
    assert "sessions" in said
    assert "unknown command 'xyzzy'; to ask the model, use `ollm -p TEXT`.\n  See `ollm --help`." in inside.fail(
        "xyzzy", code=2
    )
