"""Measurements, each beside a baseline of the same run. `make bench` runs all, `make bench BENCH=name` one."""
