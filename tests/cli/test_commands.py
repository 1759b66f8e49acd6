"""The `ollm` command: help, families, mistyped names and completion."""

import subprocess
import sys

import click
import pytest

from ollm.cli.command_table import COMMANDS
from ollm.cli.commands import command, run_command_line
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside

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


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        ([], ["chat"]),
        (["-c"], ["chat", "-c"]),
        (["fix the bug"], ["chat", "fix the bug"]),
        (["-p", "x"], ["chat", "-p", "x"]),
        (["help"], ["--help"]),
        (["help", "files"], ["files", "--help"]),
        (["sessions"], ["sessions", "list"]),
        (["sessions", "--json"], ["sessions", "list", "--json"]),
        (["sessions", "--help"], ["sessions", "--help"]),
        (["sessions", "-h"], ["sessions", "-h"]),
        (["sessions", "view"], ["sessions", "view"]),
        (["doctor"], ["doctor"]),
        (["env", "--json"], ["env", "check", "--json"]),
    ],
)
def test_a_line_means_what_its_words_say(words: list[str], parsed: list[str]) -> None:
    assert isinstance(command, click.Group)
    context = click.Context(command, info_name="ollm")
    try:
        command.parse_args(context, list(words))
    except click.exceptions.Exit:
        assert parsed == ["--help"]
        return
    assert [*context._protected_args, *context.args] == parsed


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


def test_a_command_that_ends_without_a_word_is_exit_0(inside: Inside) -> None:
    assert run_command_line(["--version"]) == 0
    assert run_command_line(["env", "check", "--json"]) == 0


def test_the_shell_completes_options_of_the_chat_and_names() -> None:
    assert isinstance(command, click.Group)
    context = click.Context(command, info_name="ollm")
    names = [item.value for item in command.shell_complete(context, "se")]
    options = [item.value for item in command.shell_complete(context, "--mo")]

    assert names == ["sessions"]
    assert set(options) == {"--mode", "--model"}
