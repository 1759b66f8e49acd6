"""The command families and the module of each, imported when it is called."""

from __future__ import annotations

COMMAND_TARGETS: dict[str, str] = {
    "chat": "ollm.cli.chat:chat",
    "sessions": "ollm.cli.sessions.group:sessions",
    "snapshots": "ollm.cli.snapshots:snapshots",
    "context": "ollm.cli.context:context",
    "files": "ollm.cli.files:files",
    "tools": "ollm.cli.tools:tools",
    "policy": "ollm.cli.policy.group:policy",
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
