"""The entry point of the script: what it answers without importing anything."""

import subprocess
import sys

import pytest

from ollm import __version__
from tests.cli.command import SCRIPT, ollm


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


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--debug", "--version"]])
def test_the_version_is_told_however_it_is_asked_for(arguments: list[str]) -> None:
    done = ollm(*arguments)

    assert (done.returncode, done.stdout) == (0, f"ollm {__version__}\n")
