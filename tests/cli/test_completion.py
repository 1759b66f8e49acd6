"""`ollm completion`: the scripts, and the shells that take them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, ollm


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
