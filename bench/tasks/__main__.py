"""`python -m bench.tasks`: the task bench alone, without other packages than ollm's own."""

from bench.tasks import rows

for _row in rows():
    pass
