"""Ordinary work and attacks, run in the sandbox beside the same outside: stories.txt, attacks.txt, world.toml."""
