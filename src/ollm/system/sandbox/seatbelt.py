"""The sandbox on macOS: a profile for sandbox-exec. Based on documentation; not yet tested on a Mac."""

from __future__ import annotations

import json
import subprocess

from ollm.system.sandbox.box import Box, list_places

PROGRAM = "/usr/bin/sandbox-exec"
PROBE_SECONDS = 10


def is_seatbelt_there() -> bool:
    """Return True if sandbox-exec enforces a profile that forbids writing."""
    profile = "(version 1)(allow default)(deny file-write*)"
    try:
        done = subprocess.run([PROGRAM, "-p", profile, "/usr/bin/true"], timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def wrap_in_seatbelt(box: Box, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Wrap a command to run in a box, as far as sandbox-exec supports it."""
    return (PROGRAM, "-p", build_profile(box), *argv)


def build_profile(box: Box) -> str:
    """Build the rules of a box; the last matching rule counts."""
    scratch = [place for place in (box.scratch,) if place]
    writable = [*scratch, *box.list_writable()]
    rules = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        *(f"(allow file-write* (subpath {_quote(path)}))" for path in writable),
        '(allow file-write* (literal "/dev/null") (literal "/dev/tty") (regex #"^/dev/fd/"))',
        *_list_reading_rules(box),
        "(deny process-info*)(allow process-info* (target same-sandbox))",
        "(deny signal)(allow signal (target same-sandbox))",
    ]
    if box.kind == "reading":
        rules += [
            r'(deny file-read* (regex #"/[.][eE][nN][vV][^/]*$"))',
            r'(allow file-read* (regex #"/[.][eE][nN][vV][.](example|sample|template)$"))',
        ]
    else:
        rules += [f"(deny file-write* (subpath {_quote(path)}))" for path in box.protected]
        rules += [f"(allow file-write* (subpath {_quote(path)}))" for path in box.approved]
    return "".join([*rules, *_list_network_rules(box)])


def _list_reading_rules(box: Box) -> list[str]:
    """List rules for hidden paths and for visible paths inside them; the last matching rule counts."""
    verbs = {"empty": "deny", "read": "allow", "write": "allow"}
    return [f"({verbs[access]} file-read* (subpath {_quote(path)}))" for path, access in list_places(box).items()]


def _quote(path: str) -> str:
    """Quote a path without escaping letters: an escaped letter would name another path."""
    return json.dumps(path, ensure_ascii=False)


def _list_network_rules(box: Box) -> list[str]:
    if box.network == "all" and box.kind == "working":
        return []
    inside = (
        ['(allow network* (local ip "localhost:*") (remote ip "localhost:*"))'] if box.network == "loopback" else []
    )
    return ["(deny network*)", *inside]
