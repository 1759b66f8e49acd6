"""What is to be run, and what of it has not run."""

from __future__ import annotations

from ollm.services.request_reading.deeds import Deeds
from ollm.services.request_reading.wanted_runs import (
    find_first_command,
    find_red_tests,
    find_still_failing,
    find_unrun,
    find_wanted_commands,
    make_command,
)


def test_what_is_run_first_and_how() -> None:
    assert find_first_command("python main.py fails. Fix add.py.") == "python main.py"
    assert find_first_command("Run build.sh, it crashes; find out why.") == "sh build.sh"
    assert find_first_command("x.js fails") == "node x.js"
    assert find_first_command("Fix add.py.") == ""
    assert [make_command(name) for name in ("a.py", "a.rb", "make x", "x.py -v")] == [
        "python a.py",
        "a.rb",
        "make x",
        "x.py -v",
    ]


def test_commands_are_read_from_the_words() -> None:
    assert find_wanted_commands("Run python main.py, then run check.sh.") == ["python main.py", "check.sh"]
    assert find_wanted_commands("Check whether test_add.py passes.") == ["test_add.py"]
    assert find_wanted_commands("Run it with python.") == []
    assert find_red_tests("Make the tests pass.", ["add.py", "test_add.py"]) == "python test_add.py"
    assert find_red_tests("Make the tests pass.", ["test_a.py", "test_b.py"]) == ""
    assert find_red_tests("Make the tests pass, but don't run test_add.py.", ["test_add.py"]) == ""


def test_what_has_run_and_succeeded_is_not_left() -> None:
    asked = "test_add.py fails. Fix add.py and run main.py."
    changed = Deeds(changed=("add.py",))
    failed = Deeds(changed=("add.py",), since_change=(("python test_add.py", 1),), texts={"add.py": "x = 1"})
    ran = Deeds(commands=(("python main.py", 0),))

    assert find_still_failing(asked, changed) == ["Now run python test_add.py."]
    assert find_still_failing(asked, failed) == ["python test_add.py still fails. Now mend add.py."]
    assert find_still_failing(asked, Deeds(since_change=(("python test_add.py", 0),))) == []
    assert find_unrun(asked, changed) == ["Now run python main.py."]
    assert find_unrun(asked, ran) == []
