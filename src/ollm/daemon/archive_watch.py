"""Keeps what a daemon knows of the team archive new: the list of others' sessions, and the process that sends ours.

In a thread of its own: no request waits for the archive's server. Without an archive there is no such thread.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING

from ollm.app import ProcessScope
from ollm.app.archive_process import ArchiveProcess
from ollm.domain.errors import OllmError

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)
REFRESH_SECONDS = 30.0  # between two looks at the archive


class ArchiveWatch:
    """One per daemon, from its start to its end."""

    def __init__(self, environment: Mapping[str, str], pause: float = REFRESH_SECONDS) -> None:
        self._environment = environment
        self._pause = pause
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="ollm-archive", daemon=True).start()

    def stop(self) -> None:
        """Not waited for: a server that does not answer keeps no daemon from ending."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._check_archive()
            self._ended.wait(self._pause)

    def _check_archive(self) -> None:
        from ollm.app.archived_sessions import refresh_list

        process = ProcessScope(self._environment)
        try:
            shipping = ArchiveProcess(process)
            if shipping.is_wanted:
                if text := shipping.announce():
                    sys.stderr.write(f"ollm: {text}\n")
                    shipping.tell(text)
                shipping.wake(keeper=os.getpid())
            refresh_list(process)
        except OllmError as error:
            log.info("%s", error, extra={"operation": "list"})
        except Exception:
            log.exception("the archive's sessions were not listed", extra={"operation": "list"})
        finally:
            process.close()
