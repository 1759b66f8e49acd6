"""The command run in this process, on a home and a workspace of its own: quick, and real but for the process."""

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ollm.cli.entry import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Inside:
    """`run` gives how a command line ended; `read` what it printed on stdout when it ended well."""

    def __init__(self, root: Path, captured: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.home = root / "home"
        self.workspace = (root / "project").resolve()
        self.workspace.mkdir()
        self.patch = patch
        self._captured = captured
        patch.setenv("OLLM_HOME", str(self.home))
        patch.setenv("HOME", str(root))
        patch.chdir(self.workspace)

    def run(self, *words: str, stdin: str | bytes = "") -> Outcome:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        self._captured.readouterr()
        code = main(list(words))
        return Outcome(code, *self._captured.readouterr())

    def read(self, *words: str, stdin: str | bytes = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.code == 0, done.err
        return done.out

    def read_json(self, *words: str) -> Any:
        return json.loads(self.read(*words, "--json"))

    def fail(self, *words: str, code: int, stdin: str = "") -> str:
        """What it says on stderr when it ends with this code."""
        done = self.run(*words, stdin=stdin)
        assert done.code == code, (done.out, done.err)
        return done.err

    def configure(self, text: str) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "config.yaml").write_text(text, encoding="utf-8")
