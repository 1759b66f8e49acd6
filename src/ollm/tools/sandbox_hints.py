"""One line for the model when a command failed because of its box: what it lacked, and the way to get it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ollm.system.sandbox.box import Box

WAY_OUT = "If it needs more, call shell with outside: true and say why; the user is asked."
NO_KEYS = re.compile(
    r"Permission denied \(publickey|Host key verification failed|could not read Username|Authentication failed|"
    r"Could not read from remote repository|ENEEDAUTH|401 Unauthorized"
)
NO_NETWORK = re.compile(
    r"Could not resolve host|Network is unreachable|Temporary failure in name resolution|Name or service not known|"
    r"EAI_AGAIN|ENETUNREACH|getaddrinfo|socket: (?:Permission denied|Operation not permitted)|Failed to connect|"
    r"NewConnectionError|PermissionError: \[Errno 13\] Permission denied$|No route to host",
    re.MULTILINE,
)
READ_ONLY = re.compile(r"Read-only file system|EROFS")
MAX_NAMES = 3


def explain_box_failure(box: Box | None, denied: Sequence[str], output: str, code: int | None) -> str:
    """What the box had to do with it, or an empty text."""
    if box is None or (not denied and not code):
        return ""
    if denied:
        return f"The sandbox blocked {_list_paths(box, denied)}. {_find_way(box, denied)}"
    if NO_KEYS.search(output):
        return f"Keys and credentials are hidden in the sandbox. {WAY_OUT}"
    if box.network == "none" and NO_NETWORK.search(output):
        return f"This ran in the sandbox without a network. {WAY_OUT}"
    if READ_ONLY.search(output):
        where = "everything is read-only" if box.kind == "reading" else "only the workspace and /tmp can be written"
        return f"In the sandbox {where}. {WAY_OUT}"
    return ""


def _list_paths(box: Box, denied: Sequence[str]) -> str:
    root = Path(box.workspace)
    names = [str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path for path in denied]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(names[:MAX_NAMES])}{more}"


def _find_way(box: Box, denied: Sequence[str]) -> str:
    inside = all(Path(path).is_relative_to(box.workspace) for path in denied)
    if inside and box.kind == "working":
        return f"Files that steer tools, agents or git are written with write_file, or by naming them. {WAY_OUT}"
    return WAY_OUT
