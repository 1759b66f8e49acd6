"""Builds the command that adds an extra to this installation: with uv, pipx or pip, from its source."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = "ollm-cli"


def describe_extra_install(extra: str, prefix: Path | None = None, source: str | None = None) -> str:
    """Return the command to run. A uv or pipx tool is reinstalled with all extras, or it would lose its others."""
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
    """Return the folder or file it was installed from, or "" if gone. A bare name may be another package."""
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
