"""The embedded model's process: llama.cpp with its HTTP server on loopback.

It reads one line of JSON on stdin (`EmbeddedOptions`), writes one on stdout when it is ready, and ends at the end of
stdin. The parent holds the other end of the pipe, so the server never outlives it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from ollm.domain.struct import Data

PR_SET_PDEATHSIG = 1

PROMPT_CACHE_MIB = 512  # A prompt stays cached while a task or a summary uses the only slot.


class EmbeddedOptions(Data, frozen=True):
    """The model to serve, its options, and the key every request must carry (no key if empty)."""

    path: str
    name: str
    window: int
    threads: int
    key: str
    tiny: bool = False


class EmbeddedReady(Data, frozen=True):
    """Address of the server, or the reason it failed to start."""

    url: str = ""
    error: str = ""


# Keeps a very small model from repeating itself endlessly. Values set by a request take precedence.
TINY_SAMPLING = {
    "temp": 0.2,
    "top_p": 0.9,
    "penalty_repeat": 1.1,
    "penalty_last_n": 256,
    "dry_multiplier": 0.8,
    "dry_allowed_length": 6,
}


def serve(order: EmbeddedOptions) -> object:
    """Load the model and listen on a port chosen by the system. Serves until the returned object is deleted."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = order.path
    settings = {
        "model_alias": {order.name},
        "api_keys": [order.key] if order.key else [],
        "hostnames": ["127.0.0.1"],
        "port": 0,
        "n_ctx": order.window,
        "n_parallel": 1,
        "cache_ram_mib": PROMPT_CACHE_MIB,
        "ui": False,
        "verbosity": 1,
    }
    apply_settings(parameters, settings)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = order.threads
    if order.tiny:
        apply_settings(parameters.sampling, TINY_SAMPLING)
    return xllamacpp.Server(parameters)


def apply_settings(into: Any, settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        setattr(into, name, value)


def end_with_parent() -> None:
    """Wait for the end of stdin. Python threads block while the model loads; `die_with_parent` covers that."""
    sys.stdin.buffer.read()
    os._exit(0)


@contextmanager
def die_with_parent() -> Iterator[None]:
    """On Linux, have the kernel kill us when the parent dies; elsewhere loading is brief enough."""
    if sys.platform != "linux":
        yield
        return
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    parent = os.getppid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    yield
    prctl(PR_SET_PDEATHSIG, 0)


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=EmbeddedOptions)
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with die_with_parent():
            server = serve(order)
        answer = EmbeddedReady(url=server.listening_address)  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - whatever the binding throws is told to the parent
        answer = EmbeddedReady(error=f"{type(error).__name__}: {error}")
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()
    if not answer.error:
        threading.Event().wait()


if __name__ == "__main__":
    main()
