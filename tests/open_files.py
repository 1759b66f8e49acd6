"""How many files this process has open, without those an earlier test has forgotten to close."""

import gc
from pathlib import Path


def count_open_files() -> int:
    gc.collect()  # what is closed by the collector is closed now, not between two counts
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
