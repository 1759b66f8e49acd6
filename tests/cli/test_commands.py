"""The `ollm` command: help, families, mistyped names, completion, and what all commands share."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from ollm import __version__
from ollm.cli.commands import COMMANDS
from ollm.cli.options import format_table, print_json, resolve_workspace, warn
from ollm.domain.errors import UsageError
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside
from tests.cli.running import Runner, running

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


def test_a_version_that_cannot_be_printed_is_an_error() -> None:
    done = subprocess.run(["sh", "-c", '"$0" --version >&-', SCRIPT], capture_output=True, check=False)

    assert (done.returncode, done.stderr[:34]) == (1, b"ollm: Cannot write the output: Bad")


def test_without_a_terminal_a_text_is_asked_once_and_none_is_read_from_the_pipe(inside: Inside) -> None:
    inside.configure("provider: {type: openai, baseUrl: 'http://127.0.0.1:9/v1', model: m}\n")

    assert inside.run("chat", "hello", "--new").code == 3
    assert "The prompt is empty." in inside.fail("chat", "--new", code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("chat", "--new", "-c"), "Use only one of --new, --resume and --continue."),
        (("chat", "-c", "-r"), "Use only one of --new, --resume and --continue."),
        (("-p", "one", "two two"), "-p already has a prompt; 'two two' is a second one."),
        (("-p", "one", "--daemon"), "--daemon needs the interactive chat."),
    ],
)
def test_options_that_exclude_each_other_are_refused(inside: Inside, words: tuple[str, ...], said: str) -> None:
    assert said in inside.fail(*words, code=2)


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


def offered(home: Path, words: str, **variables: str) -> list[str]:
    """What bash would offer for the last word of the line, which may be empty."""
    place = len(words.split(" ")) - 1
    done = ollm(home=home, COMP_WORDS=words, COMP_CWORD=str(place), _OLLM_COMPLETE="bash_complete", **variables)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ollm config get provider.m", "provider.model"),
        ("ollm config set loopDetection.m", "loopDetection.maxTurns"),
        ("ollm config set policy.approval acc", "accept-edits"),
        ("ollm config unset screen.b", "screen.bell"),
        ("ollm tools run read_m", "read_many_files"),
        ("ollm policy check edit", "edit_file"),
        ("ollm models get smol", "smollm2"),
    ],
)
def test_a_name_is_completed(tmp_path: Path, words: str, expected: str) -> None:
    assert offered(tmp_path, words) == [expected]


async def test_sessions_and_models_are_completed_with_what_they_are(tmp_path: Path) -> None:
    async with running(tmp_path, ["Yes.", "No."], models=("scripted", "qwen3:8b")) as runner:
        for text in ("first thing", "second thing"):
            await runner.run("-p", text)
        ids = [session["sessionId"] for session in runner.sessions()]
        short = offered(runner.home, "ollm sessions view ")
        assert sorted(short) == sorted(found[:8] for found in ids)
        assert offered(runner.home, f"ollm -r {ids[0][:5]}") == [ids[0][:8]]
        assert offered(runner.home, f"ollm sessions export {ids[1][:12]}") == [ids[1]]
        for shell in ("zsh_complete", "fish_complete"):
            assert "first thing" in await in_shell(runner, shell, "ollm sessions view ")
        assert "qwen3:8b" in await in_shell(runner, "bash_complete", "ollm -m q")


async def in_shell(runner: Runner, shell: str, words: str) -> str:
    """What a shell reads; fish hands over the word that is typed, the others its place."""
    *before, last = words.split(" ")
    word = last if shell == "fish_complete" else str(len(before))
    done = await runner.run(COMP_WORDS=words, COMP_CWORD=word, _OLLM_COMPLETE=shell)
    assert done.err == ""
    return done.out


def test_a_broken_config_file_is_no_noise_between_two_words(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("provider: [")

    assert offered(tmp_path, "ollm config get screen.k") == ["screen.keys"]
    assert offered(tmp_path, "ollm tools run read_m") in ([], ["read_many_files"])


def test_get_unset_and_edit_a_setting(tmp_path: Path) -> None:
    ollm("config", "set", "provider.model", "qwen3:8b", home=tmp_path)
    ollm("config", "set", "provider.apiKey", "sk-very-secret", home=tmp_path)

    assert ollm("config", "get", "provider.model", home=tmp_path).stdout == "qwen3:8b\n"
    assert ollm("config", "get", "loopDetection.maxTurns", home=tmp_path).stdout == "50\n"
    assert "very-secret" not in ollm("config", "get", "provider.apiKey", home=tmp_path).stdout
    assert json.loads(ollm("config", "get", "provider", home=tmp_path).stdout)["model"] == "qwen3:8b"
    wrong = ollm("config", "get", "model", home=tmp_path)
    assert (wrong.returncode, "did you mean provider.model?" in wrong.stderr) == (2, True)

    assert ollm("config", "unset", "provider.model", home=tmp_path).returncode == 0
    assert ollm("config", "get", "provider.model", home=tmp_path).stdout == "null\n"
    again = ollm("config", "unset", "provider.model", home=tmp_path)
    assert (again.returncode, "not set" in again.stderr) == (2, True)


def test_json_is_one_document_even_with_text_that_is_no_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"path": "caf\udce9", "text": "é"})

    assert json.loads(capsys.readouterr().out) == {"path": "caf\udce9", "text": "é"}


def test_the_workspace_is_where_one_stands_or_what_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)

    assert resolve_workspace(None) == resolve_workspace("") == resolve_workspace("~") == tmp_path.resolve()
    assert resolve_workspace("link") == tmp_path.resolve()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="the workspace file is not a directory") as found:
        resolve_workspace("file")
    assert found.value.action == "Choose one with --workspace DIR."
    with pytest.raises(UsageError, match="Cannot use the workspace gone"):
        resolve_workspace("gone")


def test_a_table_shows_control_characters_and_keeps_wide_ones_in_line() -> None:
    lines = format_table(("name", "n"), [("日本", 1), ("\x1b[31mred\u202e", 22)]).splitlines()
    assert lines[0] == "name" + 15 * " " + "n"
    assert lines[1] == "日本" + 15 * " " + "1"
    assert lines[2] == "\\x1b[31mred\\u202e  22"


def test_a_sentence_is_broken_between_words_at_a_terminal_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    text = "No model server is running on its usual port.\n  ollm chat --workspace /one/long/path --session 1234"
    warn(text)
    assert capsys.readouterr().err == f"ollm: {text}\n"

    child = pexpect.spawn(
        sys.executable,
        ["-c", f"from ollm.cli.options import warn; warn({text!r})"],
        dimensions=(24, 40),
        encoding="utf-8",
        env={**os.environ, "COLUMNS": ""},
    )
    first, second, command, _ = child.read().split("\r\n")
    assert max(len(first), len(second)) < 40
    assert command == text.partition("\n")[2], "it can be copied"
