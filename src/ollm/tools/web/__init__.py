"""Shared code of the web tools: addresses, the client, pages, search backends."""
