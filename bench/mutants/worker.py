"""A process that has imported what every test run needs, and forks into pytest once for each mutant."""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module

LIBRARIES = [
    *(
        "pytest",
        "_pytest.assertion.rewrite",
        "pytest_asyncio.plugin",
        "_hypothesis_pytestplugin",
        "hypothesis",
        "hypothesis.strategies",
    ),
    *("pydantic", "httpx", "starlette.applications", "mcp", "ruamel.yaml", "click", "tree_sitter"),
    *("prompt_toolkit", "rich.console", "pexpect"),
]
TIMED_OUT = 124


def main() -> None:
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        arguments, seconds = json.loads(line)
        print(run_fork(arguments, seconds), flush=True)


def run_fork(arguments: list[str], seconds: float) -> int:
    process = os.fork()
    if not process:
        become_pytest(arguments)
    code = wait_for(process, seconds)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    return code


def become_pytest(arguments: list[str]) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    import pytest

    os._exit(int(pytest.main(arguments)))


def wait_for(process: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return TIMED_OUT


if __name__ == "__main__":
    main()
