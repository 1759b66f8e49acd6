"""How many kills, trees and races a test makes: few in every run, many in `make soak`."""

import os

SOAK = os.environ.get("OLLM_SOAK") == "1"


def size(normal: int, soak: int) -> int:
    """`normal` in `make test`, `soak` in `make soak`."""
    return soak if SOAK else normal
