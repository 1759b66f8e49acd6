"""The command's front door: what it imports, what it says, and how it ends."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ollm import __version__
from ollm.cli import entry as edge
from ollm.cli.command_table import COMMANDS
from ollm.cli.commands import command
from ollm.cli.options import confirm_or_fail, print_json, resolve_workspace
from ollm.cli.table import print_table
from ollm.domain.errors import DeniedError, OllmError, UsageError
from ollm.system.terminal_text import make_printable
from tests.cli.command import SCRIPT, ollm
from tests.covers import covers

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


def test_the_version_is_answered_before_click_is_imported() -> None:
    modules = imported_by("--version")

    assert "ollm.cli.main" in modules
    assert "click" not in modules
    assert "typing" not in modules


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


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--debug", "--version"]])
def test_the_version_is_told_however_it_is_asked_for(arguments: list[str]) -> None:
    done = ollm(*arguments)

    assert (done.returncode, done.stdout) == (0, f"ollm {__version__}\n")


def test_help_can_be_asked_for_in_words() -> None:
    assert ollm("help").stdout == ollm("--help").stdout
    assert ollm("help", "config").stdout == ollm("config", "--help").stdout


def test_a_mistyped_command_is_answered_with_the_nearest_one() -> None:
    done = ollm("sesions", "list")

    assert done.returncode == 2
    assert "did you mean sessions?" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_completion_script(shell: str) -> None:
    done = ollm("completion", shell)

    assert done.returncode == 0
    assert "_OLLM_COMPLETE" in done.stdout


SOURCED = {
    "bash": 'eval "$(ollm completion bash)"; COMP_WORDS=(ollm ses); COMP_CWORD=1; _ollm_completion ollm; echo $COMPREPLY',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(ollm completion zsh)"; echo ${_comps[ollm]} sessions',
    "fish": 'ollm completion fish | source; complete -C "ollm ses"',
}


def test_a_shell_takes_the_script_and_completes() -> None:
    """Every shell that is installed here; bash always is."""
    there = [shell for shell in SOURCED if shutil.which(shell)]
    path = f"{Path(SCRIPT).parent}:{os.environ['PATH']}"
    for shell in there:
        plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
        done = subprocess.run(
            [shell, *plain, "-c", SOURCED[shell]],
            check=False,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert "sessions" in done.stdout, (shell, done.stderr)
        assert done.stderr == "", shell
    assert "bash" in there


def test_fish_shows_help_past_its_first_comma() -> None:
    assert 'string split --max 1 ","' in ollm("completion", "fish").stdout


def test_the_shell_completes_the_names_of_the_families() -> None:
    done = ollm(_OLLM_COMPLETE="bash_complete", COMP_WORDS="ollm se", COMP_CWORD="1")

    assert done.stdout.split() == ["plain,sessions"]


def ended_by(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "main", fail)
    return edge.main(list(arguments))


@covers("S10.6")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OllmError("it broke"), 1),
        (UsageError("it broke"), 2),
        (DeniedError("it broke"), 5),
        (KeyboardInterrupt(), 130),
        (click.UsageError("it broke"), 2),
        (BrokenPipeError(), 1),
        (ZeroDivisionError("it broke"), 1),
    ],
)
def test_every_error_ends_in_its_exit_code_without_a_traceback(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(monkeypatch, error) == code
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert ("it broke" in shown.err) == bool(str(error))


@covers("S10.6", "D645")
def test_an_error_is_one_line_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended_by(monkeypatch, OllmError("the file a.json is broken.", action="Run `ollm sessions check`."))

    assert capfd.readouterr().err == "ollm: the file a.json is broken.\n  Run `ollm sessions check`.\n"


def test_debug_shows_the_whole_of_an_unforeseen_error_redacted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "a1B2" * 9

    ended_by(monkeypatch, ZeroDivisionError(f"inside {token}"), "sessions", "--debug")

    shown = capfd.readouterr().err
    assert "Traceback" in shown
    assert "inside" in shown
    assert token not in shown


def test_debug_belongs_to_no_command_and_stops_at_the_double_dash() -> None:
    assert edge._extract_debug_flag(["files", "--debug", "--", "--debug"]) == (True, ["files", "--", "--debug"])
    assert edge._extract_debug_flag(["files"]) == (False, ["files"])


def test_a_reader_that_goes_away_is_no_error() -> None:
    writer = subprocess.Popen([SCRIPT, "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.close()
    _, errors = writer.communicate(timeout=60)

    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors


def test_a_question_without_a_terminal_is_an_error_unless_yes_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())

    confirm_or_fail("Delete it?", yes=True)
    with pytest.raises(UsageError, match="--yes"):
        confirm_or_fail("Delete it?", yes=False)


def test_a_workspace_must_be_a_directory(tmp_path) -> None:
    (tmp_path / "file").touch()

    assert resolve_workspace(str(tmp_path)) == tmp_path.resolve()
    for wrong in ("file", "absent"):
        with pytest.raises(UsageError, match="workspace"):
            resolve_workspace(str(tmp_path / wrong))


def test_a_table_shows_control_characters_and_keeps_wide_ones_in_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "n"), [("日本", 1), ("\x1b[31mred\u202e", 22)])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name" + 15 * " " + "n"
    assert lines[1] == "日本" + 15 * " " + "1"
    assert lines[2] == "\\x1b[31mred\\u202e  22"


def test_json_is_one_document_even_with_text_that_is_no_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"path": "caf\udce9", "text": "é"})

    assert json.loads(capsys.readouterr().out) == {"path": "caf\udce9", "text": "é"}


def test_one_line_of_text_has_no_line_breaks() -> None:
    assert make_printable("a\nb\tc\u200b") == "a⏎b c\\u200b"
