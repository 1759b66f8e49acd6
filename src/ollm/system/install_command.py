"""Builds the command that adds an extra to this installation: with uv, pipx or pip, from its source."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = "ollm-cli"


def describe_extra_install(extra: str, prefix: Path | None = None, source: str | None = None) -> str:
    """Return the command to run. A uv or pipx tool is reinstalled with all extras, or it would lose its others."""
    environment = prefix or Path(sys.prefix)
    package = find_source() if source is None else source
    if not package:
        return f"reinstall ollm with the extra [{extra}] from its original source"
    if (environment / "uv-receipt.toml").exists():
        return f"uv tool install --force '{package}[{choose_extras(extra, environment)}]'"
    if (environment / "pipx_metadata.json").exists():
        return f"pipx install --force '{package}[{choose_extras(extra, environment)}]'"
    return f"pip install '{package}[{extra}]'"


def choose_extras(extra: str, environment: Path) -> str:
    """Return the extras to install. `all` leaves out postgres, so an installed one is named too."""
    has_postgres = extra == "postgres" or any(environment.glob("lib/python*/site-packages/psycopg"))
    return "all,postgres" if has_postgres else "all"


def find_source() -> str:
    """Return the folder or file it was installed from, or "" if gone. A bare name may be another package."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        direct_url = json.loads(distribution(PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = urlsplit(str(direct_url.get("url", "")))
    folder = Path(unquote(url.path))
    return str(folder) if url.scheme == "file" and folder.exists() and "'" not in str(folder) else ""
