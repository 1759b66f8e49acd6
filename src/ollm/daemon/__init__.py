"""The conversation behind a socket: any number of clients, the hub owns the turns (W)."""
