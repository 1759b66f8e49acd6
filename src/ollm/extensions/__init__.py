"""Additions from outside: hooks, extensions, MCP servers."""
