"""The guests' tasks: each can be solved, and is not solved by words alone where something was to be done."""

from pathlib import Path

import pytest
from bench.tasks.guests_first import GUESTS_FIRST
from bench.tasks.guests_second import GUESTS_SECOND
from bench.tasks.task import Task

from tests.house.guest_solutions import FIRST_SOLUTIONS, apply_changes
from tests.house.guest_solutions_second import SECOND_SOLUTIONS

TASKS = (*GUESTS_FIRST, *GUESTS_SECOND)
SOLUTIONS = {**FIRST_SOLUTIONS, **SECOND_SOLUTIONS}


def test_a_third_of_either_part_is_longer_and_each_task_has_a_solution() -> None:
    assert (len(GUESTS_FIRST), len(GUESTS_SECOND)) == (36, 24)
    for tasks in (GUESTS_FIRST, GUESTS_SECOND):
        assert sum(task.kind == "long" for task in tasks) * 3 == len(tasks)
    assert {task.name for task in TASKS} == set(SOLUTIONS)
    assert len(SOLUTIONS) == len(TASKS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_is_finished_by_its_solution_and_not_by_its_answer_or_its_files_alone(
    task: Task, tmp_path: Path
) -> None:
    answer, changes = SOLUTIONS[task.name]
    task.write_files(tmp_path)
    assert not task.is_finished(tmp_path, answer if changes else "I have looked at it.")

    apply_changes(changes, tmp_path)

    assert task.is_finished(tmp_path, answer)


@pytest.mark.parametrize("task", [task for task in TASKS if SOLUTIONS[task.name][1]], ids=lambda task: task.name)
def test_a_broken_file_is_an_unfinished_task_and_no_error(task: Task, tmp_path: Path) -> None:
    answer, changes = SOLUTIONS[task.name]
    task.write_files(tmp_path)
    for path in {**task.files, **changes}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("[[[ (\n")

    assert not task.is_finished(tmp_path, answer)
