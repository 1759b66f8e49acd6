"""The command's front door: answers `--version` at once, and imports a command family only when it is asked for."""

from __future__ import annotations

import sys

FAMILIES: dict[str, str] = {
    "chat": "ollm.cli.chat:chat",
    "sessions": "ollm.cli.sessions:sessions",
    "snapshots": "ollm.cli.snapshots:snapshots",
    "context": "ollm.cli.context:context",
    "files": "ollm.cli.files:files",
    "tools": "ollm.cli.tools:tools",
    "policy": "ollm.cli.policy:policy",
    "env": "ollm.cli.environment:env",
    "redact": "ollm.cli.redact:redact",
    "config": "ollm.cli.config:config",
    "trust": "ollm.cli.trust:trust",
    "models": "ollm.cli.models:models",
    "doctor": "ollm.cli.doctor:doctor",
    "daemon": "ollm.cli.daemon:daemon",
    "extensions": "ollm.cli.extensions:extensions",
    "mcp": "ollm.cli.mcp:mcp",
    "completion": "ollm.cli.completion:completion",
}


def run() -> None:
    """Entry point of the `ollm` script."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ollm import __version__

        print(f"ollm {__version__}")
        return
    from ollm.cli.edge import main

    sys.exit(main(sys.argv[1:]))
