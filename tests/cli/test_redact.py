"""`ollm redact`, run as a person runs it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.covers import covers

CORE = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def ollm(
    home: Path, *arguments: str, environment: dict[str, str] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ollm", *arguments],
        env={**CORE, "HOME": str(home), **(environment or {})},
        input=given,
        capture_output=True,
        cwd=home,
        check=False,
    )


@covers("S10.7")
def test_redact_reads_a_file_or_standard_input(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("password=hunter2 and sesame-street\r\nplain\n", newline="")
    environment = {"X_KEY": "sesame-street"}

    from_file = ollm(tmp_path, "redact", "log.txt", environment=environment)
    from_input = ollm(tmp_path, "redact", environment=environment, given=b"token=abc123 \xff\xfe\n")

    assert from_file.stdout == b"password=[redacted] and [redacted]\r\nplain\n"
    assert from_input.stdout == b"token=[redacted] \xff\xfe\n"


def test_redact_says_what_it_cannot_read(tmp_path: Path) -> None:
    for name in ("missing.txt", "."):
        ran = ollm(tmp_path, "redact", name)
        assert ran.returncode == 1
        assert name.encode() in ran.stderr
        assert b"Traceback" not in ran.stderr
