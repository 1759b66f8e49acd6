"""Runs a piece of a test in a child of its own, for what cannot be taken back: filters, Landlock, namespaces."""

import os
import traceback
from collections.abc import Callable


def run_in_child(body: Callable[[], object]) -> str:
    """What the body returned or raised, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                said = repr(body())
            except OSError as error:
                said = f"errno {error.errno}"
            except BaseException:
                said = traceback.format_exc()
            os.write(writing, said.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said
