"""The table of commands: each with the module it lives in, imported only when it is called, and its line of help."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "chat": ("ollm.cli.chat:chat", "Chat with a model (the default command)."),
    "sessions": ("ollm.cli.sessions.group:sessions", "List, view, search, export and delete sessions."),
    "snapshots": ("ollm.cli.snapshots:snapshots", "List, create and restore context snapshots."),
    "context": ("ollm.cli.context:context", "Show what is sent to the model."),
    "files": ("ollm.cli.files:files", "List the files the agent can see."),
    "tools": ("ollm.cli.tools:tools", "List the tools, or run one."),
    "skills": ("ollm.cli.skills:skills", "List the skills the agent can read."),
    "policy": ("ollm.cli.policy.group:policy", "Show, check and revoke permissions."),
    "env": ("ollm.cli.environment:env", "Show which environment variables tools get."),
    "redact": ("ollm.cli.redact:redact", "Redact secrets from text."),
    "config": ("ollm.cli.config:config", "Show, check and change settings."),
    "trust": ("ollm.cli.trust:trust", "Trust or untrust project settings."),
    "models": ("ollm.cli.models:models", "List, download and remove models."),
    "doctor": ("ollm.cli.doctor:doctor", "Check your setup and suggest fixes."),
    "daemon": ("ollm.cli.daemon:daemon", "Manage the background server."),
    "acp": ("ollm.cli.acp:acp", "Serve an editor (Zed, JetBrains, Neovim, Emacs)."),
    "archive": ("ollm.cli.archive.group:archive", "Share sessions between machines (PostgreSQL)."),
    "web": ("ollm.cli.web:web", "Open your sessions in a browser."),
    "extensions": ("ollm.cli.extensions:extensions", "Manage extensions."),
    "mcp": ("ollm.cli.mcp:mcp", "Manage MCP servers."),
    "hooks": ("ollm.cli.hooks:hooks", "List hooks, and import those of Claude Code."),
    "completion": ("ollm.cli.completion:completion", "Print a shell completion script."),
}

DEFAULT_SUBCOMMANDS = {
    "sessions": "list",
    "snapshots": "list",
    "context": "show",
    "tools": "list",
    "skills": "list",
    "policy": "show",
    "env": "check",
    "config": "show",
    "models": "list",
    "daemon": "status",
    "archive": "status",
    "extensions": "list",
    "mcp": "list",
    "hooks": "list",
}  # what a group does when it is called alone
