"""What happened in a course of events, line by line, compared with what was recorded of it when it was read and found right.

A change that is meant is recorded anew (`RECORD_COURSES=1 pytest …`) and read in the difference.
"""

import os
from pathlib import Path


def compare_course(path: Path, lines: list[str]) -> None:
    if os.environ.get("RECORD_COURSES") == "1":
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    recorded = path.read_text(encoding="utf-8").splitlines()
    for number, (now, before) in enumerate(zip(lines, recorded, strict=False), 1):
        assert now == before, f"{path.name}:{number} after {lines[max(0, number - 4) : number - 1]}"
    assert len(lines) == len(recorded), path.name
