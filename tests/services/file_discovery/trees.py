"""Random trees with random ignore files, made to find the corners of git's rules."""

import os
import random
import subprocess
from pathlib import Path

NAMES = [
    "a", "b", "foo", "foobar", "bar", "baz.txt", "x.log", "x.tmp", "é.txt", "日本", "a b", "[x]", "{a,b}", "#h", "!n",
    "back\\slash", ".hidden", "Foo", "trail ", "st*r", "a-b", "]", "-", "q?", "x.txt", "deep",
]  # fmt: skip
PIECES = [
    "*", "*", "**", "?", "[ab]", "[!a]", "[^b]", "[a-f]", "[]x]", "[a-]", "[[:alpha:]]", "[![:digit:]x]", "[\\]]", "[é]",
    "\\*", "\\[", "\\a", "\\ ", "{a,b}", "foo", "a", "b", "bar", "x", ".log", ".t", "é", "日", "*.txt", "[", "\\\\", "-",
]  # fmt: skip


class RandomTree:
    """A directory that git takes for a repository, some files in it, and rules that nobody would write by hand."""

    def __init__(self, seed: int, root: Path) -> None:
        self.random = random.Random(seed)
        self.root = root
        self.folders = [root]

    def make(self, rule_file: str = ".gitignore", second: str | None = None) -> None:
        (self.root / ".git" / "objects").mkdir(parents=True)
        (self.root / ".git" / "refs").mkdir()
        (self.root / ".git" / "info").mkdir()
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self._fill(self.root, 0)
        for name in filter(None, (rule_file, second)):
            for folder in self.random.sample(self.folders, min(len(self.folders), 1 + self.random.randrange(4))):
                self._rules(folder / name)
            if self.random.random() < 0.7:
                self._rules(self.root / name)
        if self.random.random() < 0.3:
            self._rules(self.root / ".git" / "info" / "exclude")

    def _fill(self, folder: Path, depth: int) -> None:
        for name in self.random.sample(NAMES, self.random.randint(3, 8)):
            inner = folder / name
            if depth < 3 and self.random.random() < 0.36:
                inner.mkdir()
                self.folders.append(inner)
                self._fill(inner, depth + 1)
            else:
                inner.write_bytes(b"")

    def _rules(self, path: Path) -> None:
        lines = [self._line() for _ in range(self.random.randint(1, 6))]
        ending = self.random.choice(["\n", "\n", "\n", "\r\n"])
        start = b"\xef\xbb\xbf" if self.random.random() < 0.05 else b""
        path.write_bytes(start + ending.join(lines).encode() + self.random.choice([b"", b"\n"]))

    def _line(self) -> str:
        pick = self.random.random()
        if pick < 0.05:
            return self.random.choice(
                ["", "# words", "/", "!", "!/", "**", "**/", "/**", "*", "*/", "//", "\\", "foo//"]
            )
        segments = [self._segment() for _ in range(self.random.choice([1, 1, 1, 2, 2, 3]))]
        line = "/".join(segments)
        line = ("/" if self.random.random() < 0.25 else "") + line + ("/" if self.random.random() < 0.25 else "")
        line = ("!" if self.random.random() < 0.3 else "") + line
        return line + self.random.choice(["", "", "", "", "", " ", "  ", "\\ ", "\t"])

    def _segment(self) -> str:
        if self.random.random() < 0.55:
            return self.random.choice([*NAMES, "**", "**", "*"])
        return "".join(self.random.choice(PIECES) for _ in range(self.random.choice([1, 2, 2, 3])))


def git_says(root: Path, *arguments: str) -> set[str]:
    """What git lists. Its own settings are left out; names are given as bytes and read as Python reads them."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard", *arguments]
    listed = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True).stdout
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}
