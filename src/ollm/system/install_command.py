"""Command that adds an extra to this installation: by uv, pipx or pip, from the folder it came from."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = "ollm-cli"


def describe_extra_install(extra: str, prefix: Path | None = None, source: str | None = None) -> str:
    """Return the command to run. A tool of uv or pipx is reinstalled with all extras: those it had would be lost."""
    place = prefix or Path(sys.prefix)
    package = find_source() if source is None else source
    if not package:
        return f"install ollm again with its extra [{extra}], from where you got it"
    if (place / "uv-receipt.toml").exists():
        return f"uv tool install --force '{package}[{choose_extras(extra)}]'"
    if (place / "pipx_metadata.json").exists():
        return f"pipx install --force '{package}[{choose_extras(extra)}]'"
    return f"pip install '{package}[{extra}]'"


def choose_extras(extra: str) -> str:
    return "all,postgres" if extra == "postgres" else "all"


def find_source() -> str:
    """The folder or file that it was installed from; empty if it is gone. A name alone could be anybody's package."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        told = json.loads(distribution(PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = urlsplit(str(told.get("url", "")))
    folder = Path(unquote(url.path))
    return str(folder) if url.scheme == "file" and folder.exists() and "'" not in str(folder) else ""
