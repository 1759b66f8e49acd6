"""Writes of a test run are left to the kernel: what they prove outlives a killed process, and no test cuts the power."""

import os


def leave_writes_in_memory() -> None:
    """`os.fsync` and `os.fdatasync` of this process and its forks answer at once; a wrong descriptor is an error as ever."""
    for name in ("fsync", "fdatasync"):
        setattr(os, name, os.fstat)
