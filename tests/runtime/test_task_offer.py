"""When a task is offered without a call; what it brings is driven from tests/cli/test_tasks.py."""

import pytest

from ollm.runtime.task_offer import needs_exploring


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("where is the retry?", True),
        ("Where are sessions folded?", True),
        ("how does compaction work", True),
        ("find all callers of pay", True),
        ("which files use the lease?", True),
        ("who calls close()?", True),
        ("fix the bug in cart.py", False),
        ("add a test", False),
        ("somewhere isolated", False),
        ("", False),
    ],
)
def test_a_question_over_many_files_is_known_by_its_words(text: str, wide: bool) -> None:
    assert needs_exploring(text) is wide
