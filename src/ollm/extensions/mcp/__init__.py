"""MCP servers: programs and addresses whose tools, prompts and resources join a conversation."""
