"""The twins of the tuning half: each can be solved, and is not solved by words alone or by a near miss."""

import sys
from pathlib import Path

import pytest
from bench.tasks import HALVES
from bench.tasks.task import Task, run_program

from tests.house.guest_solutions import Solution, apply_changes
from tests.house.twin_solutions import NEAR_MISSES, TWIN_SOLUTIONS

TWINS = {task.name: task for task in HALVES["twins"]}


def test_each_of_the_64_has_a_solution_and_is_small() -> None:
    assert len(HALVES["twins"]) == len(TWINS) == 64
    assert set(TWINS) == set(TWIN_SOLUTIONS)
    assert max(len(text.splitlines()) for task in TWINS.values() for text in task.files.values()) <= 40


@pytest.mark.parametrize("task", TWINS.values(), ids=lambda task: task.name)
def test_a_twin_is_finished_by_its_solution_and_not_by_its_answer_or_its_files_alone(
    task: Task, tmp_path: Path
) -> None:
    answer, changes = TWIN_SOLUTIONS[task.name]
    task.write_files(tmp_path)
    assert not task.is_finished(tmp_path, answer if changes else "I have looked at it.")

    apply_changes(changes, tmp_path)

    assert task.is_finished(tmp_path, answer)


@pytest.mark.parametrize(("name", "program"), [("t run a draw", "draw.py"), ("t run the checks", "checks.py")])
def test_what_a_program_prints_is_the_answer_to_what_it_was_run_for(name: str, program: str, tmp_path: Path) -> None:
    TWINS[name].write_files(tmp_path)

    printed = run_program((sys.executable, program), tmp_path).stdout

    answer, _ = TWIN_SOLUTIONS[name]
    assert answer in printed.splitlines()


@pytest.mark.parametrize(("name", "miss"), NEAR_MISSES, ids=[name for name, _ in NEAR_MISSES])
def test_a_near_miss_does_not_finish_a_twin(name: str, miss: Solution, tmp_path: Path) -> None:
    answer, changes = miss
    TWINS[name].write_files(tmp_path)

    apply_changes(changes, tmp_path)

    assert not TWINS[name].is_finished(tmp_path, answer)


@pytest.mark.parametrize("name", [name for name, (_, changes) in TWIN_SOLUTIONS.items() if changes])
def test_a_broken_file_is_an_unfinished_twin_and_no_error(name: str, tmp_path: Path) -> None:
    answer, changes = TWIN_SOLUTIONS[name]
    TWINS[name].write_files(tmp_path)
    for path in {**TWINS[name].files, **changes}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("[[[ (\n")

    assert not TWINS[name].is_finished(tmp_path, answer)
