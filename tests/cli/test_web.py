"""`ollm web`, as a person runs it."""

import os
import re
import stat
import subprocess
from pathlib import Path
from urllib.request import urlopen

from tests.cli.command import SCRIPT


def run(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "OLLM_HOME": str(home / ".ollm"), **more}
    return subprocess.run([SCRIPT, *words], env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_it_starts_the_daemon_and_prints_a_link_or_opens_a_browser(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    try:
        printed = run(tmp_path, "web", "--print")
        assert printed.returncode == 0, printed.stderr
        link = printed.stdout.strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#ticket=[\w-]{43,}", link)
        with urlopen(link) as reply:
            assert b"<ollm-app>" in reply.read()

        opened = run(tmp_path, "web", BROWSER=f"{browser} %s")
        assert opened.returncode == 0
        assert (tmp_path / "opened").read_text().startswith(link.partition("#")[0])
        assert opened.stdout == ""

        none = run(tmp_path, "web", BROWSER="", PATH="/nowhere", DISPLAY="")
        assert "Open this link within a minute" in none.stderr
        assert none.stdout.startswith("http://127.0.0.1:")
    finally:
        run(tmp_path, "daemon", "stop")
