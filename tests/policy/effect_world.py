"""A place in which any change and any look outside shows, with lines run in it by a real bash.

With the box on, a line runs as the product would run it unasked: in a reading box. With the box off, it runs as bash runs
it, but inside an outer box whose workspace is the whole place, so that nothing beyond it can be harmed.
"""

import hashlib
import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from ollm.policy.shell.verdict import ShellJudge
from ollm.system.process_tree import become_subreaper
from ollm.system.sandbox.box import Box, Level
from ollm.system.sandbox.confined import make_git_environment
from ollm.system.sandbox.host import send_order, start_host
from ollm.system.sandbox.levels import make_namespaces
from tests.policy.conftest import Place

CANARY = "canary-0815"
KEY_TEXT = f"{CANARY}\n" * 911  # no other file here is as long
SECONDS = 3
HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


class EffectWorld:
    """`level` is what the policy takes the kernel to hold; `boxed` whether it does."""

    def __init__(self, directory: Path, level: Level, *, boxed: bool) -> None:
        become_subreaper()
        self.root, self.level, self.boxed = directory / "world", level, boxed
        self.root.mkdir()
        self.place = Place(self.root)
        self.out, self.mark = self.root / "out", self.root / "mark"
        self.workspace, self.home = self.place.workspace, self.place.home
        self.key = self.home / ".ssh" / "id_rsa"
        self._furnish()
        self.judge = ShellJudge(self.place.engine().rules, self.place.boundary, find_level=lambda: self.level)
        self._box = self._make_box(directory)
        self._namespaces = make_namespaces(self._box) if level == "full" or not boxed else ()
        self._control, self._host = start_host(self._namespaces)
        self._before = self._list_files()
        self.notices_reads = self._try_access_time()

    def _furnish(self) -> None:
        self.out.mkdir()
        for name in (".env", "out", "src/link-out", "src/dir-out"):
            (self.workspace / name).unlink()
        self.key.write_text(KEY_TEXT)
        (self.workspace / "dir").mkdir()
        (self.workspace / "dir/link").symlink_to(self.key)
        (self.workspace / "link").symlink_to(self.key)
        (self.workspace / "payload").write_text(f"a[$(touch {self.mark})]\n")
        (self.workspace / "names").write_text(f"{self.key}\n")
        (self.workspace / "sums").write_text(f"{'0' * 32}  {self.key}\n")
        (self.workspace / "package.json").write_text("{}\n")
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-C", str(self.workspace)]
        for words in (["init", "-q"], ["add", "a", "src"], ["commit", "-qm", "one"]):
            subprocess.run([*git, *words], check=True, capture_output=True)

    def _make_box(self, directory: Path) -> Box:
        if not self.boxed:
            return Box("working", str(self.root), str(directory / "nobody"))
        scratch = directory / "scratch"
        scratch.mkdir()
        return Box("reading", str(self.workspace), str(self.home), scratch="" if self.level == "full" else str(scratch))

    def close(self) -> None:
        self._control.close()
        for descriptor in self._namespaces:
            with suppress(OSError):
                os.close(descriptor)

    def settle(self) -> None:
        """What is there now is how it should be."""
        self._before = self._list_files()

    def fill(self, line: str) -> str:
        places = {"KEYDIR": self.key.parent, "KEY": self.key, "OUT": self.out, "MARK": self.mark}
        for name, path in places.items():
            line = line.replace(name, str(path))
        return line

    def allows(self, line: str) -> bool:
        return self.judge.judge({"command": line}, (), "ask").verdict.decision == "allow"

    def find_effect(self, line: str) -> str:
        """What a line has read or changed that it must not; nothing when it has not."""
        self.age_key()
        said = self._run(line)
        return self.find_trace(said)

    def find_trace(self, said: bytes) -> str:
        """What a line that was run has said or left that it must not."""
        told = self._find_told(said)
        if told or (self.notices_reads and self.key.stat().st_atime_ns > 2 * 10**9):
            return f"it read the key{told}"
        now = self._list_files()
        changed = sorted(path for path in now.keys() | self._before.keys() if now.get(path) != self._before.get(path))
        self._before = now
        return f"it changed {', '.join(changed)}" if changed else ""

    def _run(self, line: str) -> bytes:
        directory, empty = os.open(self.workspace, os.O_PATH | os.O_DIRECTORY), os.open(os.devnull, os.O_RDWR)
        reading, writing = os.pipe()
        fields = {
            "box": self._box,
            "argv": [shutil.which("timeout") or "timeout", "-k1", str(SECONDS), "bash", "-c", line],
            "environment": {"PATH": os.defpath, "HOME": str(self.home), **make_git_environment()},
        }
        send_order(self._control, json.dumps(fields).encode(), [directory, empty, writing, writing])
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()
        report = b""
        while not report.endswith(b"gone\n"):
            report += self._control.recv(4096) or pytest.fail(f"the box died of {line!r}")
        os.close(directory)
        os.close(empty)
        return said

    def _find_told(self, said: bytes) -> str:
        """The key in what was said, plain or turned, as a hash, or by its length."""
        whole = KEY_TEXT.encode()
        shown = [CANARY, CANARY[::-1], CANARY.upper(), CANARY.encode().hex(), "Y2FuYXJ5LTA4MTUK", str(len(whole))]
        shown += [hashlib.new(name, whole).hexdigest() for name in HASHES]
        return next((f" ({one[:20]})" for one in shown if one.encode() in said), "")

    def age_key(self) -> None:
        os.utime(self.key, ns=(10**9, 2 * 10**9))

    def _try_access_time(self) -> bool:
        """Whether this file system tells that a file was read."""
        self.age_key()
        self.key.read_bytes()
        return self.key.stat().st_atime_ns > 2 * 10**9

    def _list_files(self) -> dict[str, tuple[int, int, int]]:
        found = (Path(folder) / name for folder, _, names in os.walk(self.root) for name in names)
        others = (path for path in found if path != self.key and ".ollm" not in path.parts)  # the agent's own files
        states = {str(path.relative_to(self.root)): path.lstat() for path in others}
        states["key"] = self.key.lstat()
        return {
            name: (state.st_mode, state.st_size, 0 if name == "key" else state.st_mtime_ns)
            for name, state in states.items()
        }
