"""The tools: reading a file beside `open().read()`, and what judging a call's arguments costs."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.row import Row, pair, seconds
from ollm.config.settings import OutputSettings, ToolSettings
from ollm.domain.messages import ToolCall
from ollm.domain.tools import PolicyRequest, Verdict
from ollm.runtime.calls.dispatch import CallServices, Dispatch
from ollm.services.edit_ledger import EditLedger
from ollm.system.paths import Boundary
from ollm.tools.edit_file import EditFile
from ollm.tools.framework.base import ToolContext, ToolRegistry, make_spec
from ollm.tools.read_file import ReadFile, ReadFileNeeds

SIZE = 1_000_000
CALLS = 2_000


class AllowAll:
    def evaluate(self, request: PolicyRequest) -> Verdict:
        return Verdict(decision="allow", reason="")


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _reading(Path(folder))
    yield from _validating()


def _reading(folder: Path) -> Iterator[Row]:
    path = folder / "log.txt"
    path.write_text("a line of text that is neither long nor short\n" * (SIZE // 46), encoding="utf-8")
    roomy = ToolSettings(output=OutputSettings(max_chars=2 * SIZE, max_lines=2 * SIZE))
    context = ToolContext(boundary=Boundary.around(folder), settings=roomy)
    tool, needs = ReadFile(path="log.txt"), ReadFileNeeds(ledger=EditLedger())

    async def ours() -> None:
        for _ in range(20):
            await tool.run(context, needs)

    def baseline() -> None:
        for _ in range(20):
            with path.open(encoding="utf-8") as file:
                file.read()

    mine, plain = pair(lambda: asyncio.run(ours()), baseline)
    yield Row(
        "read_file of 1 MB, beside open().read()",
        mine / 20 * 1e3,
        plain / 20 * 1e3,
        goal=15,
        unit="ms",
        note="with the file's hash, so that a change by others is noticed",
    )
    yield Row(
        "five lines of it, through dispatch", seconds(lambda: asyncio.run(_dispatched(context))) / 200 * 1e6, unit="µs"
    )


def _silent(_event: object) -> None:
    """Nobody listens."""


async def _dispatched(context: ToolContext) -> None:
    registry = ToolRegistry()
    registry.register(ReadFile, ReadFileNeeds(ledger=EditLedger()))
    services = CallServices(registry=registry, policy=AllowAll(), context=context, emit=_silent)
    dispatch = Dispatch(services)
    for number in range(200):
        arguments = {"path": "log.txt", "startLine": 1, "endLine": 5}
        await dispatch.run([ToolCall(id=f"c{number}", name="read_file", arguments=arguments)], 1)


def _validating() -> Iterator[Row]:
    cases: dict[str, tuple[Any, dict[str, Any]]] = {
        "read_file, as documented": (ReadFile, {"path": "a.py", "startLine": 1, "endLine": 20}),
        "edit_file, as documented": (EditFile, {"path": "a.py", "edits": [{"target": "a", "replacement": "b"}]}),
        "edit_file, forgiven": (EditFile, {"file_path": "a.py", "old_string": "a", "new_string": "b"}),
    }
    for name, (tool, arguments) in cases.items():
        parse = make_spec(tool, None).parse

        def run(parse: Any = parse, arguments: Any = arguments) -> None:
            for _ in range(CALLS):
                parse(arguments)

        goal = None if "forgiven" in name else 50
        yield Row(f"judge arguments: {name}", seconds(run) / CALLS * 1e6, None, goal, "µs", of="figure")
