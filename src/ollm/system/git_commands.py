"""Git for our own use: with no hook and no program that the repository names."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ollm.domain.errors import OllmError
from ollm.system.sandbox.confined import (
    add_settings,
    find_program,
    make_git_environment,
    make_helper_environment,
    start_confined,
)
from ollm.system.sandbox.git_settings import read_git_settings

GIT_TIMEOUT_SECONDS = 600
MAX_ERROR_CHARS = 800
OPTIONS = (
    "commit.gpgSign=false merge.verifySignatures=false gc.auto=0 maintenance.auto=false submodule.recurse=false "
    "advice.addEmbeddedRepo=false advice.detachedHead=false core.quotePath=false apply.ignoreWhitespace=no"
)
IDENTITY = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
_PROGRAM = re.compile(r"filter\..*\.(clean|smudge|process|required)|merge\..*\.driver", re.IGNORECASE)


def run_git(
    folder: Path,
    variables: Mapping[str, str],
    *words: str,
    stdin: bytes = b"",
    check: bool = True,
    readable: Sequence[str] | None = None,
) -> bytes:
    """Run git in a folder with these variables alone, and return its output. With `readable` it is confined: it only
    reads, and only these folders. Raises OllmError with git's reason."""
    program = find_program("git")
    if program is None:
        raise OllmError("git is not installed.", action="Install git first.")

    def start() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [program, *words],
            cwd=folder,
            env=variables,
            input=stdin,
            capture_output=True,
            timeout=GIT_TIMEOUT_SECONDS,
            start_new_session=True,  # Ctrl-C reaches only us, and ssh has no terminal for questions.
            check=False,
        )

    try:
        done = start() if readable is None else start_confined(start, program, readable)
    except subprocess.TimeoutExpired as error:
        raise OllmError(f"git {words[0]} took longer than {GIT_TIMEOUT_SECONDS} seconds.") from error
    if check and done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")[-MAX_ERROR_CHARS:]
        raise OllmError(f"git {words[0]} failed: {said.removeprefix('fatal: ').removeprefix('error: ')}")
    return done.stdout


class GitCommands:
    """Runs git in the repository around a folder, with the settings of the person."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    @cached_property
    def _variables(self) -> dict[str, str]:
        """Variables of git: settings of the person, but no programs that the repository's own settings name."""
        variables = {**make_helper_environment(self._environment), **make_git_environment(), "LC_ALL": "C.UTF-8"}
        variables |= {name: self._environment[name] for name in IDENTITY if name in self._environment}
        home = str(Path.home())
        own, *rest = (
            dict(read_git_settings(home, directory=str(self._folder), scope=(scope,)) or ())
            for scope in ("--global", "--local", "--worktree")
        )
        theirs = {name: own.get(name, "") for name in (rest[0] | rest[1]) if _PROGRAM.fullmatch(name)}
        theirs = {name: value or ("false" if name.endswith(".required") else "") for name, value in theirs.items()}
        return add_settings(variables, dict(option.split("=", 1) for option in OPTIONS.split()) | theirs)

    @cached_property
    def _author(self) -> dict[str, str]:
        """Variables that name an author, if git knows none."""
        known = self._git(self._folder, "var", "GIT_COMMITTER_IDENT", check=False)
        return {} if known else {name: "ollm" if name.endswith("NAME") else "ollm@localhost" for name in IDENTITY}

    def _git(
        self,
        folder: Path,
        *words: str,
        identity: bool = False,
        check: bool = True,
        variables: Mapping[str, str] | None = None,
    ) -> str:
        author = self._author if identity else {}
        return os.fsdecode(self._run(folder, *words, variables={**author, **(variables or {})}, check=check))

    def _find_object(self, folder: Path, name: str) -> str:
        words = ("rev-parse", "--quiet", "--verify", "--end-of-options", name)
        return self._git(folder, *words, check=False).strip()

    def _list_names(self, folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> list[str]:
        return self._git(folder, *words, variables=variables).split("\0")[:-1]

    def _run(
        self,
        folder: Path,
        *words: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> bytes:
        return run_git(folder, {**self._variables, **(variables or {})}, *words, stdin=stdin, check=check)
