"""What people add from outside: hooks, extensions, MCP servers."""
