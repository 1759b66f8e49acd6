"""The strangers' tasks: each can be solved, and is not solved by words alone where something was to be done."""

from pathlib import Path

import pytest
from bench.tasks.strangers_first import STRANGERS_FIRST
from bench.tasks.strangers_second import STRANGERS_SECOND
from bench.tasks.task import Task

from tests.house.stranger_solutions import SOLUTIONS, solve

TASKS = (*STRANGERS_FIRST, *STRANGERS_SECOND)


def test_both_halves_are_as_many_and_each_task_has_a_solution() -> None:
    assert len(STRANGERS_FIRST) == len(STRANGERS_SECOND) == 36
    assert {task.name for task in TASKS} == set(SOLUTIONS)
    assert len(SOLUTIONS) == len(TASKS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_is_finished_by_its_solution_and_not_by_its_answer_or_its_files_alone(
    task: Task, tmp_path: Path
) -> None:
    answer, changes = SOLUTIONS[task.name]
    task.write_files(tmp_path)
    assert not task.is_finished(tmp_path, answer if changes else "I have looked at it.")

    solve(task.name, tmp_path)

    assert task.is_finished(tmp_path, answer)
