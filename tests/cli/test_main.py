"""The entry point of the script: what it answers without importing anything."""

import subprocess
import sys
from types import ModuleType

import pytest

from ollm import __version__
from ollm.cli.main import run
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
