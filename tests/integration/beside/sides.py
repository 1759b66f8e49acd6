"""A person's home with a project in it, in which commands run outside or in the sandbox, and what they leave there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.forked import BEFORE_START, finish

SECONDS = 60
# Names of these count, their content does not: it holds times, or the place where it was made.
GENERATED = re.compile(r"(^|/)(__pycache__|\.venv|venv|node_modules|[^/]+\.egg-info|target|dist|build)(/|$)")
UNSEEN = re.compile(
    r"(^|/)(\.ollm|\.cache|\.npm|\.local|\.config|\.cargo|\.rustup|\.pytest_cache|\.mypy_cache|\.ruff_cache|[^/]*\.git)(/|$)"
)
CHANGING = re.compile(r"\b[0-9a-f]{7,40}\b|\d\d:\d\d:\d\d")  # hashes of commits, times
MAX_COMPARED_BYTES = 64 * 1024
FOUND_LEVEL: dict[str, object] = {}  # what the command stored about the level, asked once in a process
PROJECT = """
git init -q -b main {place} && cd {place}
printf 'one\\n' > a.txt; printf 'two\\n' > b.txt; printf 'print("hello")\\n' > app.py; printf 'K=1\\n' > .env.example
printf 'all:\\n\\t@echo made > out.txt\\ntest:\\n\\t@python3 app.py\\nclean:\\n\\trm -f out.txt\\n' > Makefile
mkdir pkg; printf 'def add(a, b):\\n    return a + b\\n' > pkg/calc.py; touch pkg/__init__.py; printf '.venv/\\n*.pyc\\n' > .gitignore
git add -A; git commit -qm start
git switch -qc feat; mkdir -p .github/workflows .vscode; echo 'on: push' > .github/workflows/a.yml
echo '{{}}' > .vscode/s.json; echo 'Be brief.' > AGENTS.md; echo feat >> a.txt; git add -A; git commit -qm feat
git switch -q main; echo three >> b.txt; git commit -qam three; git tag v1
"""
SUBMODULE = """
git init -q -b main src/parent && cd src/parent && git -c protocol.file.allow=always submodule --quiet add "$HOME/src/project" sub
git commit -qm parent && cd sub && git remote set-head origin -d; git switch -qc work
"""
PLACES = {
    "plain": ("src/project", ""),
    "empty": ("src/empty", "mkdir -p src/empty"),
    "subfolder": ("src/project/pkg", ""),
    "linked": ("link", "ln -s src/project link"),
    "worktree": ("src/tree", "git -C src/project worktree add -q ../tree -b tree"),
    "submodule": (
        "src/parent/sub",
        SUBMODULE,
    ),
    "tmp": ("src/project", ""),
    "elsewhere": ("../work/project", "mkdir ../work && cp -a src/project ../work/project"),
    "remote": ("src/clone", "git clone -q --bare src/project src/remote.git && git clone -q src/remote.git src/clone"),
}


class Side:
    """`level` is a level of the sandbox, or `outside`."""

    def __init__(self, root: Path, place: str, level: str, home: str = "home", path: str = "") -> None:
        self.root, self.level = root, level
        self.home = root / home
        where, extra = PLACES[place]
        self.workspace = Path(os.path.normpath(self.home / where))
        (self.home / "src").mkdir(parents=True)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name.startswith(BEFORE_START)},
            "PATH": path or os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "USER": "person",
            "TERM": "dumb",
            "GIT_EDITOR": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.run_outside(
            "git config --global user.name Person; git config --global user.email p@example.org", self.home
        )
        if place != "empty":
            made = self.run_outside(PROJECT.format(place="src/project"), self.home)
            assert made[0] == 0, made
        made = self.run_outside(extra, self.home)
        assert made[0] == 0, made
        if level != "outside":
            self._set_level()

    def _set_level(self) -> None:
        """Let the command take this level as the one that was found since the machine was started."""
        cache = self.home / ".ollm/cache/sandbox.json"
        cache.parent.mkdir(mode=0o700, parents=True)
        if not FOUND_LEVEL:
            self._call("tools", "run", "shell", "--args", '{"command": "true"}', "--yes", "--json")
            FOUND_LEVEL.update(json.loads(cache.read_text()))
        cache.write_text(json.dumps({**FOUND_LEVEL, "level": self.level}))

    def _call(self, *arguments: str) -> tuple[int, bytes, bytes]:
        return finish(arguments, self.workspace, self.environment, None, SECONDS + 60)

    def run(self, line: str, seconds: int = SECONDS) -> tuple[int, str]:
        """Run a line as the agent does: its exit code (-1 if it was refused) and what it said."""
        if self.level == "outside":
            return self.run_outside(line, self.workspace, seconds)
        arguments = json.dumps({"command": line, "timeout": seconds})
        _, said, errors = self._call("tools", "run", "shell", "--args", arguments, "--yes", "--json")
        try:
            told = json.loads(said.decode(errors="replace"))
        except ValueError:
            return -2, (said + errors).decode(errors="replace")
        if told.get("exitCode") is None:
            return (0 if told.get("ok") else -1), str(told.get("error") or told.get("llmContent"))
        return told["exitCode"], told["llmContent"]

    def run_outside(self, line: str, cwd: Path | None = None, seconds: int = SECONDS) -> tuple[int, str]:
        """Run a line as the person does in another terminal."""
        try:
            done = subprocess.run(
                ["bash", "-c", line],
                env=self.environment, cwd=cwd or self.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, ""
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell reports a signal
        return code, done.stdout + done.stderr

    def describe(self) -> dict[str, str]:
        """Describe every file of the home, and each repository as git tells it."""
        state = {name: self._describe_file(path) for name, path in self._iter_files(self.home)}
        for repository in sorted(
            path.parent for path in self.home.glob("src/**/.git") if ".git/" not in str(path.parent)
        ):
            state[f"{repository.relative_to(self.home)} (git)"] = self._describe_repository(repository)
        return state

    def _iter_files(self, top: Path) -> Iterator[tuple[str, Path]]:
        for folder, folders, files in os.walk(top):
            here = Path(folder)
            links = [name for name in folders if (here / name).is_symlink()]
            folders[:] = [
                name
                for name in folders
                if name not in links and not UNSEEN.search(f"{(here / name).relative_to(top)}/")
            ]
            for path in (here / name for name in (*files, *links)):
                if not UNSEEN.search(str(path.relative_to(top))):
                    yield str(path.relative_to(top)), path

    def _describe_file(self, path: Path) -> str:
        if path.is_symlink():
            return f"-> {path.readlink()}".replace(str(self.root), "ROOT")
        if not path.is_file() or GENERATED.search(str(path)) or path.stat().st_size > MAX_COMPARED_BYTES:
            return "there"
        data = path.read_bytes()
        if b"\0" in data:
            return "there"
        mode = "x" if path.stat().st_mode & 0o100 else ""
        text = CHANGING.sub("", data.decode("utf-8", "replace").replace(str(self.root), "ROOT"))
        return mode + hashlib.sha256(text.encode()).hexdigest()[:12]

    def _describe_repository(self, place: Path) -> str:
        line = (
            "git status; git for-each-ref --format='%(refname) %(tree)'; git log --all --format=%s | sort; "
            "git symbolic-ref -q HEAD; git stash list --format=%s; git config --local --list | sort; git ls-files -s | cut -f2; ls .git/hooks"
        )
        return CHANGING.sub("H", self.run_outside(line, place)[1].replace(str(self.root), "ROOT"))


@contextmanager
def make_folder(prefix: str, parent: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def compare(outside: dict[str, str], boxed: dict[str, str]) -> list[str]:
    """List what the two sides do not have in common."""
    names = sorted(name for name in outside.keys() | boxed.keys() if outside.get(name) != boxed.get(name))
    found = []
    for name in names:
        one, other = outside.get(name, "missing"), boxed.get(name, "missing")
        if name.endswith("(git)"):
            lines = [set(text.splitlines()) for text in (one, other)]
            one, other = sorted(lines[0] - lines[1])[:4], sorted(lines[1] - lines[0])[:4]
        found.append(f"{name}: {one} outside, {other} in the box")
    return found


def list_user_prefixes() -> dict[str, list[str]]:
    """List the users that this machine has, each with the words that make a command theirs. Root becomes somebody else in
    a mount namespace of its own, in which that user can reach the Python that runs this."""
    if os.geteuid() != 0:
        return {"ordinary": []}
    base = Path(sys.base_prefix)
    hidden = next((one for one in reversed(base.parents) if one != Path("/") and not one.stat().st_mode & 0o001), None)
    mounts = "true"
    if hidden is not None:
        mounts = (
            f"mkdir -p /run/ollm-python && mount --bind {base} /run/ollm-python && mount -t tmpfs -o mode=755 none {hidden}"
            f" && mkdir -p {base} && mount --bind /run/ollm-python {base}"
        )
    script = f'{mounts} && exec setpriv --reuid=1234 --regid=1234 --clear-groups -- "$@"'
    able = bool(shutil.which("unshare") and shutil.which("setpriv"))
    return {"root": [], **({"ordinary": ["unshare", "-m", "sh", "-c", script, "sh"]} if able else {})}
