"""Observers of a conversation: hooks, extensions, MCP servers, learnt model facts."""
