"""Shell completion."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, ollm
from tests.cli.running import Runner, running


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
