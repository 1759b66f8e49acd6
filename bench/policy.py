"""What a verdict costs: of a call of any tool, and of a shell command with the parser's start."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.row import Row
from ollm.domain.tools import PolicyRequest
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import RuleSet
from ollm.policy.shell.parse import find_parser
from ollm.system.paths import Boundary


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory)
        (workspace / "src").mkdir()
        (workspace / "src/a.py").write_text("x")
        engine = PolicyEngine(RuleSet(), Boundary.around(workspace, user_home=workspace / "home"))
        yield _calls(engine, workspace)
        yield _commands(engine)
        yield _known_commands(engine)


def _calls(engine: PolicyEngine, workspace: Path) -> Row:
    request = PolicyRequest(tool="read_file", params={"path": "src/a.py"})
    resolved = workspace / "src/a.py"
    ours = _each(lambda: engine.evaluate(request), 2000)
    baseline = _each(resolved.resolve, 2000)
    return Row("policy: read_file, against resolving its path", ours * 1e6, baseline * 1e6, 50, "µs", of="figure")


def _commands(engine: PolicyEngine) -> Row:
    """Every line is new, so the parser is started for each."""
    number = itertools.count()

    def judged() -> object:
        command = f"git diff HEAD~{next(number)} | head -n 20 && grep -rn foo src"
        return engine.evaluate(PolicyRequest(tool="shell", params={"command": command}))

    parser = find_parser()
    assert parser is not None

    def started() -> object:
        return subprocess.run(
            [parser, "-ln", "bash", "--to-json"], input=b"git diff | head", capture_output=True, check=True
        )

    ours, baseline = _each(judged, 100), _each(started, 100)
    return Row("policy: a new shell line, against the parser alone", ours * 1e3, baseline * 1e3, 10, "ms", of="figure")


def _known_commands(engine: PolicyEngine) -> Row:
    request = PolicyRequest(tool="shell", params={"command": "git diff | head -n 20"})
    return Row(
        "policy: a shell line seen before",
        _each(lambda: engine.evaluate(request), 500) * 1e3,
        None,
        2,
        "ms",
        of="figure",
    )


def _each(action: Callable[[], object], times: int) -> float:
    """The median time of one call."""
    action()
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)
