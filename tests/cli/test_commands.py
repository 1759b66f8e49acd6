"""The `ollm` command: version, help, families, mistyped names and completion."""

import subprocess
import sys
from types import ModuleType

import pytest

from ollm import __version__
from ollm.cli.commands import COMMANDS
from ollm.cli.main import run
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


def test_the_version_is_answered_before_click_is_imported() -> None:
    modules = imported_by("--version")

    assert "ollm.cli.main" in modules
    assert "click" not in modules
    assert "typing" not in modules


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--debug", "--version"]])
def test_the_version_is_told_however_it_is_asked_for(arguments: list[str]) -> None:
    done = ollm(*arguments)

    assert (done.returncode, done.stdout) == (0, f"ollm {__version__}\n")


def test_ctrl_c_before_anything_has_begun_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        @property
        def main(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "ollm.cli.entry", Interrupted("ollm.cli.entry"))
    monkeypatch.setattr(sys, "argv", ["ollm", "-p", "hi"])
    with pytest.raises(SystemExit) as ended:
        run()

    assert ended.value.code == 130


def test_a_version_that_cannot_be_printed_is_an_error() -> None:
    done = subprocess.run(["sh", "-c", '"$0" --version >&-', SCRIPT], capture_output=True, check=False)

    assert (done.returncode, done.stderr[:34]) == (1, b"ollm: Cannot write the output: Bad")


def test_two_prompts_are_one_too_many(inside: Inside) -> None:
    said = inside.fail("-p", "one", "two two", code=2)

    assert "-p already has a prompt; 'two two' is a second one." in said
    assert "Quote it as one text." in said


def test_the_daemon_is_for_the_chat(inside: Inside) -> None:
    said = inside.fail("-p", "one", "--daemon", code=2)

    assert "--daemon needs the interactive chat." in said
    assert "Drop it when you use -p." in said


def test_without_a_terminal_a_text_is_asked_once_and_none_is_read_from_the_pipe(inside: Inside) -> None:
    inside.configure("provider: {type: openai, baseUrl: 'http://127.0.0.1:9/v1', model: m}\n")

    assert inside.run("chat", "hello", "--new").code == 3
    assert "The prompt is empty." in inside.fail("chat", "--new", code=2)


@pytest.mark.parametrize("words", [("--new", "-c"), ("--new", "-r", "abcd"), ("-c", "-r")])
def test_only_one_way_to_begin_is_taken(inside: Inside, words: tuple[str, ...]) -> None:
    assert "Use only one of --new, --resume and --continue." in inside.fail("chat", *words, code=2)


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "view", ""),
        ("sessions", "archive", ""),
        ("sessions", "export", " ", "-o", "-"),
        ("sessions", "rewind", "", "--to", "1"),
        ("context", "show", ""),
        ("-p", "hello", "-r", ""),
        ("chat", "--resume", ""),
    ],
)
def test_an_empty_session_id_is_refused(inside: Inside, words: tuple[str, ...]) -> None:
    assert "is not a session id." in inside.fail(*words, code=2)
