"""The tool `task`: its words, its limits, and that a small window never shows it."""

from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.session import TaskReport, TaskRequest
from ollm.tools.catalogue import describe_catalogue
from ollm.tools.framework.tool_selection import select_tools
from ollm.tools.task import Task, render_report
from tests.tools.drive import Driver, content, error


async def test_the_report_comes_back_with_what_it_rests_on(workspace: Path) -> None:
    asked: list[TaskRequest] = []

    async def run(request: TaskRequest, emit) -> TaskReport:
        asked.append(request)
        emit("Read a.py\n")
        return TaskReport(text="Found.", session_id="s", steps=1, files=("a.py",), problem="It ended early.")

    drive = Driver(workspace)
    drive.registry.register(Task, run)
    record = await drive("task", prompt="Look.\nWell.", files=["a.py"], agent="x")

    assert content(record) == "Found.\n[It looked at a.py. It ended early.]"
    assert record.result is not None
    assert record.result.return_display == "report after 1 step; It ended early.\n· Read a.py\nFound."
    assert asked == [TaskRequest(prompt="Look.\nWell.", files=("a.py",), agent="x", call_id="c1")]
    assert Task(prompt="Look.\nWell.", agent="x").summary() == "Task for x: Look."


async def test_a_task_without_a_report_failed(workspace: Path) -> None:
    async def run(_request: TaskRequest, _emit) -> TaskReport:
        raise ToolFailure("Timeout", "Too late.")

    drive = Driver(workspace)
    drive.registry.register(Task, run)

    assert error(await drive("task", prompt="x")) == ("Timeout", "Too late.")
    assert error(await drive("task"))[0] == "ValidationError"


def test_many_files_are_counted() -> None:
    report = TaskReport(text="x", session_id="s", steps=2, files=tuple(f"f{number}" for number in range(14)))

    assert render_report(report).endswith("f11 and 2 more.]")


@pytest.mark.parametrize("mode", ["code", "plan", "assistant", "debug"])
def test_a_window_of_8k_never_shows_it(mode) -> None:
    for window in (2048, 4096, 8192, 16_384):
        assert "task" not in [tool.name for tool in select_tools(mode, describe_catalogue(), window)]
