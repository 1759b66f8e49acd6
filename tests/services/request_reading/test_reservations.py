"""Orders that depend on something, wait for a word, are forbidden or taken back; files that are not to be run."""

from __future__ import annotations

import pytest

from ollm.services.request_reading.answer_beginnings import CLOSED, begin_first_step
from ollm.services.request_reading.explanations import is_meant
from ollm.services.request_reading.primed_request import prime_request
from ollm.services.request_reading.reservations import (
    forbids_runs,
    is_reserved,
    may_run,
    only_forbids,
    runs_forbidden,
)
from ollm.services.request_reading.wanted_runs import find_wanted_commands

PRIMED = "Files here: a.py, b.py, notes.txt"
FILES = {
    "old.txt": "a\n",
    "a.py": "import os\n\nLIMIT = 5\nDEBUG = True\n\n\ndef load(path):\n    return path\n\n\ndef save(x):\n    return load(x)\n",
    "util.py": "X = 1\n",
    "run.sh": "rm -rf build\n",
    "todo.md": "- [ ] buy milk\n- [ ] call Bob\n",
    "compose.yaml": "services:\n  web:\n    port: 80\n  db:\n    port: 5432\n    debug: false\n",
    "README.md": "# App\n\n## Install\n\npip\n\n## Usage\n\nrun\n",
    "docs/page.md": "# Page\n",
}
TAKEN_BACK = (
    "Actually, don't.",
    "Actually, leave it.",
    "No wait, the other one.",
    "Never mind.",
    "No, forget it.",
    "Just kidding.",
    "Or would that be a bad idea?",
    "Is that ok?",
    "Don't do it yet.",
    "But not now.",
    "Change nothing yet.",
    "Explain the sentence above.",
    "Just show me the diff.",
    "But confirm first.",
    "Is it?",
)
ORDERS = (
    "Delete old.txt.",
    "Tick off buy milk.",
    "Comment out DEBUG in a.py.",
    "Add debug: true to db in compose.yaml.",
    "Set the port of db in compose.yaml to 5433.",
    "Move load from a.py to util.py.",
    "Rename old.txt to older.txt.",
    "Set LIMIT to 10 in a.py.",
)


@pytest.mark.parametrize(
    "asked",
    [
        "delete a.py only if nothing imports it",
        "if a.py is unused delete it",
        "Delete a.py if it is empty.",
        "delete notes.txt but ask me first",
        "Before you delete a.py, tell me whether b.py needs it",
        "remove notes.txt unless b.py reads it",
        "Rename a.py to c.py once I confirm.",
        "move notes.txt to old, but not yet",
        "could you delete a.py? wait for my ok",
        "don't rename foo to baz in a.py",
        "never remove notes.txt",
        "Don't run b.py",
    ],
)
def test_nothing_is_done_by_rule_under_a_reservation(asked: str) -> None:
    assert is_reserved(asked)
    assert begin_first_step(asked, PRIMED) == ""
    assert begin_first_step(asked, PRIMED, whole=True) == ""


@pytest.mark.parametrize(
    "asked",
    [
        "delete a.py",
        "Rename foo to baz in a.py. Don't change anything else.",
        "Don't touch b.py, fix a.py.",
        "Don't forget to delete a.py.",
        "f in a.py should return 0 if the list is empty.",
        "If the list is empty, f in a.py must return 0.",
        "Never edit b.py, but add the import to a.py.",
        "Please remove the unused import in a.py.",
        "If you run b.py you get an error, please fix it",
        "Remove the file notes.txt, if it exists.",
        "Rename foo to bar in a.py if possible",
        "delete_user() in a.py should raise a KeyError if the user is not there",
    ],
)
def test_what_belongs_to_the_work_itself_is_no_reservation(asked: str) -> None:
    assert not is_reserved(asked)


def test_what_is_forbidden_is_not_taken_for_an_order() -> None:
    begun = begin_first_step("Fix the bug in a.py, but don't rename foo to baz and don't run b.py.", PRIMED, whole=True)

    assert "sed" not in begun
    assert "b.py" not in begun


def test_what_only_forbids_is_no_work() -> None:
    assert only_forbids("Don't run b.py.")
    assert only_forbids("please never delete a.py!")
    assert not only_forbids("Don't run b.py, read it.")
    assert not only_forbids("")


def begin(request: str) -> str:
    """What a tiny model's answer begins with: for it the most is closed."""
    primed = prime_request(request, sorted(FILES), FILES.get, 8_000)
    return begin_first_step(request, f"\n\n{primed.text}", whole=True)


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_is_carried_out_and_one_that_is_reserved_is_not(order: str) -> None:
    assert begin(order).endswith(CLOSED)
    assert [begin(f"{order} {said}") for said in TAKEN_BACK] == [""] * len(TAKEN_BACK)


@pytest.mark.parametrize(
    "request_",
    [
        "Delete old.txt; no, rename it.",
        "Delete old.txt - no, leave it.",
        "Delete old.txt or rather rename it to older.txt.",
        "Delete old.txt if it is empty.",
        "Delete old.txt only when a.py does not read it.",
        "Delete old.txt after copying it to new.txt.",
        "Delete old.txt and keep a backup of it.",
        "Delete old.txt: what would happen?",
        "Delete old.txt with git rm.",
        "Remove old.txt references from README.md.",
        "Remove old.txt as a dependency of a.py.",
        "Copy old.txt to docs/new.txt unless it exists.",
        "Set LIMIT to 10 in a.py when DEBUG is set.",
        "Set LIMIT to 'ten' in a.py.",
        "Remove the Usage section from README.md and add it to docs/page.md.",
        "Remove the Usage section from README.md after copying it to docs/page.md.",
        "Remove the Usage section from README.md if docs/page.md has it.",
        "Rename load to read except in tests.",
        "Rename load to read and keep load as an alias.",
        "Rename load to read if nothing else is called read.",
        "Rename load to read or fetch.",
        "Rename load to read in the docs only.",
        "Replace load by a class.",
        "Replace load with something faster.",
        "Move LIMIT from a.py to util.py but keep it in a.py too.",
        "When run.sh fails, it should print an error.",
        "If a.py crashes, log it.",
        "Don't run run.sh, it fails.",
        "Never run run.sh; it crashes.",
        "Do not execute run.sh. It crashes because build is missing. Fix it.",
        "run.sh crashes. Fix it, but never execute the script.",
        "run.sh crashes when I run it. Please don't run run.sh yourself.",
    ],
)
def test_what_holds_only_sometimes_or_in_part_is_left_to_the_model(request_: str) -> None:
    assert begin(request_) == ""


@pytest.mark.parametrize(
    "request_",
    [
        "Set x to 1 in a.py. No other file may change.",
        "Mark call Bob as not yet done.",
        "Fix a.py, it does not print the numbers yet.",
        "Delete old.txt. Don't touch new.txt.",
        "Rename f to g or the tests fail.",
        "Tell me whether a.py is ok.",
        "Keep the order of the lines above.",
        "Add a function no_wait to a.py.",
    ],
)
def test_plain_orders_are_not_taken_back(request_: str) -> None:
    assert not is_reserved(request_)


def test_a_file_that_is_not_to_be_run_is_read_and_changed_and_never_run() -> None:
    request = "Don't run run.sh. Fix it and run check.sh."

    assert find_wanted_commands(request) == ["check.sh"]
    for command in ("sh run.sh", "./run.sh", "cd . && bash -x run.sh", "MODE=1 sh ./run.sh | head"):
        assert runs_forbidden(command, request), command
        assert not is_meant(request, "shell", command), command
    for command in ("cat run.sh", "sed -i s/a/b/ run.sh", "sh check.sh", "python rerun.sh.py", "chmod +x run.sh"):
        assert not runs_forbidden(command, request), command
        assert is_meant(request, "shell", command), command


def test_nothing_is_run_where_that_is_said() -> None:
    assert forbids_runs("Fix a.py without running it.")
    assert forbids_runs("Fix a.py, but do not execute the program.")
    assert not forbids_runs("Fix a.py so that it does not run twice.")
    assert may_run("sh a.sh", "Run a.sh.")
    assert not may_run("sh a.sh", "Fix a.sh and don't run it.")
