"""External additions: hooks, extensions, MCP servers."""
