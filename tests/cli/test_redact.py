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


def test_secrets_in_odd_places_go_and_what_is_none_stays(tmp_path: Path) -> None:
    signature = "fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024"
    secrets = (
        "https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz012345678/getMe",
        "pul-" + "a1b2c3d4" * 5,
        "ops_eyJzaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSIsInVzZXJBdXRoIjp7Im1",
        f"https://b.s3.amazonaws.com/x?X-Amz-Signature={signature}",
        rf"\nhttps://b.s3.amazonaws.com/x?X-Amz-Signature={signature}\n",
        "7123456789:AAHabcdefghijKLMNOPQRSTuvwxyzABCDEFG",
        "bkua_" + "a1b2c3d4" * 5,
        "\x1b[32mghp_abcdefghijABCDEFGHIJ0123456789abcdef\x1b[0m",
        "  GITHUB_TOKEN: letmein",
    )
    plain = "token_type=bearer expires_in=3600\napi_key=os.environ['API_KEY']\n"

    ran = ollm(tmp_path, "redact", given=("\n".join(secrets) + "\n" + plain).encode())

    said = ran.stdout.decode()
    for part in ("AAabcdef", "a1b2c3d4", "eyJzaWdu", signature, "ghp_abc", "letmein", "AAHabc"):
        assert part not in said
    assert said.endswith(plain)
