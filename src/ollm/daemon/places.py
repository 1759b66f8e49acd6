"""Files of a running daemon: socket, process id and token in `~/.ollm/run` (0700)."""

from __future__ import annotations

import os
import stat

import msgspec

from ollm.config.environment import Home
from ollm.domain.errors import StorageError, suggest_storage_fix
from ollm.domain.struct import Data
from ollm.system.atomic import read_json, replace_file
from ollm.system.locks import is_same_process


class DaemonProcess(Data, frozen=True):
    """Contents of `daemon.pid`."""

    pid: int
    started: str
    port: int | None = None

    @property
    def url(self) -> str | None:
        return f"http://127.0.0.1:{self.port}" if self.port else None


class RunFiles:
    """The files in `run/`."""

    def __init__(self, home: Home) -> None:
        self.directory = home.run
        self.socket = home.run / "daemon.sock"
        self.pid_file = home.run / "daemon.pid"
        self.lock = home.run / "daemon.lock"
        self.token_file = home.run / "token"
        self.web_file = home.run / "web.json"

    def prepare(self) -> None:
        """Make the directory private; refuse a link or another user's directory."""
        self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.mkdir(mode=0o700, exist_ok=True)
        found = self.directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise StorageError(f"{self.directory} is not a directory of yours.", action="Remove it, then try again.")
        if stat.S_IMODE(found.st_mode) != 0o700:
            self.directory.chmod(0o700)

    def write_token(self, token: str) -> None:
        """Write the token to a file that only this user can read."""
        replace_file(self.token_file, token.encode("ascii"), mode=0o600, durable=False)

    def write_pid_file(self, running: DaemonProcess) -> None:
        try:
            replace_file(self.pid_file, msgspec.json.encode(running), mode=0o600, durable=False)
        except OSError as error:
            raise StorageError(
                f"{self.pid_file} cannot be written: {error.strerror}.",
                action=f"{suggest_storage_fix(error)}, then start it again.",
            ) from error

    def find_running(self) -> DaemonProcess | None:
        """Find the running daemon; None if the file was left by a dead one."""
        found = read_json(self.pid_file, DaemonProcess, None)
        return found if found and is_same_process(found.pid, found.started) else None

    def remove_files(self) -> None:
        for file in (self.socket, self.pid_file, self.token_file):
            file.unlink(missing_ok=True)
