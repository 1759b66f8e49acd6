"""`python -m bench.tasks`: the task bench alone, without other packages than ollm's own. With a set and the name of a
task it judges the files of the current folder."""

import sys
from pathlib import Path

from bench.tasks import rows
from bench.tasks.sets import load_set

if len(sys.argv) > 2:
    _task = next(task for task in load_set(sys.argv[1]) if task.name == sys.argv[2])
    sys.exit(not _task.judge_files(Path.cwd()))
for _row in rows():
    pass
