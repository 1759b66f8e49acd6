"""The embedded model's own process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil


def test_the_server_does_not_outlive_a_parent_that_was_killed(model_home: Path) -> None:
    script = textwrap.dedent("""
        import asyncio, os, sys, time
        from pathlib import Path
        from tests.providers.local_models.test_embedded import provider, pid, said, short
        async def main():
            model = provider(Path(sys.argv[1]))
            await said(model, short())
            print(pid(model), flush=True)
            time.sleep(60)
        asyncio.run(main())
    """)
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", script, str(model_home)], cwd=root, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
