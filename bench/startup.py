"""How long the command takes to answer, against a Python that does nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.row import Row, pair, program


def rows() -> Iterable[Row]:
    command = str(Path(sys.executable).parent / "ollm")
    bare = program([sys.executable, "-I", "-c", "pass"])
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "OLLM_HOME": home}
        for arguments, goal in ((["--version"], 2.5), (["--help"], 6.0)):
            ours, baseline = pair(program([command, *arguments], environment), bare)
            yield Row(f"ollm {arguments[0]}", ours * 1000, baseline * 1000, goal, "ms")
