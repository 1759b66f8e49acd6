"""`python -m bench.tasks`: the bench of tasks alone, with nothing but the standard library."""

from bench.tasks import rows

for _row in rows():
    pass
