"""What the web tools share: addresses, the client, pages, search backends."""
