"""The daemon: serve conversations over a socket to any number of clients; the hub runs the turns (W)."""
