"""A supervisor's side of the box: keeps the first process of it, hands it commands and hears what becomes of them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

from ollm.system.sandbox.box import SCRATCH_PREFIX, Box
from ollm.system.sandbox.host import send_order, start_host


class BoxRunner:
    """Runs one command at a time. The process it keeps is used again by the next command of the same session."""

    def __init__(self) -> None:
        self.host = self._inner = 0
        self.finished = True
        self._session = ""
        self._control: socket.socket | None = None
        self._heard = b""
        self._scratches: set[str] = set()

    def start(self, command: dict[str, Any], descriptors: list[int]) -> None:
        """Hand over a command. `descriptors` are its directory, its three streams, and the session's namespaces."""
        box = Box.from_fields(command["box"])
        if os.path.basename(box.scratch).startswith(SCRATCH_PREFIX):  # made for boxes, and for nothing else
            self._scratches.add(box.scratch)
        fields = {name: command[name] for name in ("box", "argv", "environment", "terminal")}
        self._keep_host(box, command["session"], tuple(descriptors[4:]))
        assert self._control is not None
        self.finished, self._heard = False, b""
        try:
            send_order(self._control, fields, descriptors[:4])
        except OSError:
            self.stop()
            raise

    def _keep_host(self, box: Box, session: str, namespaces: tuple[int, ...]) -> None:
        """The process of the last command serves again, if the session, or the box made by a wrapper, is the same."""
        session = f"{session} {box}" if box.wrapper else session
        if self._control is not None and self._session == session:
            return
        self.stop()
        if box.wrapper:
            from ollm.system.sandbox.bubblewrap import start_wrapped_host

            self._control, self.host, self._inner = start_wrapped_host(box)
        else:
            self._control, self.host = start_host(namespaces)
        self._session = session

    @property
    def processes(self) -> set[int]:
        """Those of the box itself, which end when all others have."""
        return {self.host, self._inner}

    @property
    def descriptor(self) -> int:
        """Readable when there is something to hear; -1 without a process."""
        return -1 if self._control is None else self._control.fileno()

    def read_lines(self) -> list[bytes]:
        """What there is to pass on. `finished` says afterwards whether the command and all of it is gone."""
        data = b""
        if self._control is not None:
            with suppress(OSError):
                data = self._control.recv(65_536)
        if not data:
            self.forget()
            return []
        *lines, self._heard = (self._heard + data).split(b"\n")
        self.finished = b"gone" in lines
        return [line for line in lines if line != b"gone"]

    def forget(self) -> None:
        """The process has ended, and with it all that was in the box."""
        if self._control is not None:
            self._control.close()
        self._control, self.host, self._inner, self.finished = None, 0, 0, True

    def remove_scratches(self) -> None:
        """Take away the temporary directories of the boxes: nobody is left who would, and who made them may have been
        killed."""
        if self._scratches:
            import shutil

            for scratch in self._scratches:
                shutil.rmtree(scratch, ignore_errors=True)

    def stop(self) -> None:
        """End the process: it does so by itself when nobody talks to it any more."""
        host = self.host
        self.forget()
        if host:
            with suppress(ChildProcessError):
                os.waitpid(host, 0)
