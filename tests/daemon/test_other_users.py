"""The daemon's socket and other users, where its directory was opened to them by mistake."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.daemon.running import Daemon
from tests.servers.openai import ScriptedServer

STRANGER = 65_534
ASK = """
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
found = socket.socket(socket.AF_UNIX)
found.connect(sys.argv[1])
try:
    found.sendall(b"GET /health HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n")
    print(found.recv(100))
except ConnectionError as error:
    print(b"")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_gets_no_answer_even_if_the_directory_is_open() -> None:
    directory = Path(tempfile.mkdtemp(prefix="ollm-open-"))
    try:
        async with ScriptedServer() as server:
            daemon = Daemon(directory, server)
            await daemon.start()
            for place, mode in ((directory, 0o755), (daemon.home, 0o755), (daemon.socket.parent, 0o777)):
                place.chmod(mode)
            daemon.socket.chmod(0o666)
            line = [sys.executable, "-c", ASK, str(daemon.socket)]
            own = subprocess.run([*line, "0"], capture_output=True, text=True, check=True)
            other = subprocess.run([*line, str(STRANGER)], capture_output=True, text=True, check=False)
            await daemon.end()
    finally:
        shutil.rmtree(directory)

    assert "200 OK" in own.stdout
    assert other.returncode == 0, f"it could not even connect: {other.stderr}"
    assert other.stdout.strip() == "b''"
