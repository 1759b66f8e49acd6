"""The process the agent starts once: it keeps supervisors ready, one of them always free, and outlives the agent only
to see that nothing is left. Standard library only.

Free supervisors wait on the agent's socket themselves; a message is one byte with five descriptors: control socket,
working directory, standard input, output and errors. A supervisor whose command is gone is free again, so that a
command costs no extra fork.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
from contextlib import suppress

from ollm.system.process_tree import become_subreaper, kill_all, map_children, wake_on_child
from ollm.system.sandbox.host import BoxRunner
from ollm.system.supervisor import supervise

_NEWS = struct.Struct("!i?")  # process id of a supervisor, and whether it is free


def main(descriptor: int) -> None:
    """Serve the agent at the other end of this socket until it is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # a handler, not SIG_IGN: commands must not inherit deafness
    become_subreaper()
    gc.freeze()
    SupervisorPool(socket.socket(fileno=descriptor)).serve()


class SupervisorPool:
    """The supervisors, and which of them are free."""

    def __init__(self, agent: socket.socket) -> None:
        self._agent = agent
        self._free: dict[int, bool] = {}
        self._news, self._tell = os.pipe()
        os.set_blocking(self._news, False)
        self._waking = wake_on_child()
        self._hangup = select.poll()
        self._hangup.register(agent, 0)

    def serve(self) -> None:
        while True:
            if not any(self._free.values()) and not self._hangup.poll(0):
                self._add()
            if not self._free:
                break
            ready, _, _ = select.select([self._news, self._waking], [], [])
            if self._news in ready:
                self._read_news()
            if self._waking in ready:
                os.read(self._waking, 4096)
                self._reap()
        kill_all([os.getpid()])

    def _read_news(self) -> None:
        """All the news there is; what comes from a supervisor that is gone by now says nothing."""
        with suppress(BlockingIOError):
            while True:
                supervisor, free = _NEWS.unpack(os.read(self._news, _NEWS.size))
                if supervisor in self._free:
                    self._free[supervisor] = free

    def _add(self) -> None:
        supervisor = os.fork()
        if supervisor == 0:
            os._exit(self._run_supervisor())
        self._free[supervisor] = True

    def _run_supervisor(self) -> int:
        """A supervisor's life: take a command, see it to its end, be free again."""
        signal.set_wakeup_fd(-1)
        become_subreaper()
        waking, runner = wake_on_child(), BoxRunner()
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._agent, 1, 8)
            if not message:
                runner.stop()
                runner.remove_scratches()
                return 0
            os.write(self._tell, _NEWS.pack(os.getpid(), False))
            supervise(socket.socket(fileno=descriptors[0]), descriptors[1:], waking, runner)
            os.write(self._tell, _NEWS.pack(os.getpid(), True))

    def _reap(self) -> None:
        self._read_news()
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if self._free.pop(ended, True) is False:
                    self._kill_strays()

    def _kill_strays(self) -> None:
        """A supervisor was killed at its work: what it watched over is now our child."""
        strays = [child for child in map_children().get(os.getpid(), []) if child not in self._free]
        kill_all(strays, also=strays)
