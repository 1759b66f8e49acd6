"""What the calls of a turn in fact did, in one line."""

from ollm.domain.messages import ToolCall
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.runtime.calls.call_deeds import MAX_TOLD, CallDeeds, count_marked, shorten_list

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n+w\n"


def add(deeds: CallDeeds, name: str, error: str = "", **arguments: str) -> None:
    code = int(arguments.pop("code")) if "code" in arguments else None
    result = RecordedResult(llm_content="", diff=DIFF if name != "shell" else "", exit_code=code)
    failure = ErrorInfo(type=error, message=error) if error else None
    call = ToolCall(id="c", name=name, arguments=dict(arguments))
    record = ToolCallRecord(id="c", name=name, args=dict(arguments), timestamp="", result=result, error=failure)
    deeds.add([call], [record])


def test_files_are_counted_and_commands_told_with_their_codes() -> None:
    deeds = CallDeeds()
    add(deeds, "edit_file", path="a.py")
    add(deeds, "write_file", path="a.py")
    add(deeds, "write_file", path="b.py", error="Denied")
    add(deeds, "shell", command="pytest", code="1")

    assert deeds.describe() == "Changed: a.py (+4 -2). Ran: pytest (exit code 1)."


def test_nothing_is_told_of_a_turn_that_only_looked_and_long_lists_are_cut() -> None:
    deeds = CallDeeds()
    add(deeds, "shell", command="ls", code="0")
    assert deeds.describe() == ""

    for number in range(MAX_TOLD + 2):
        add(deeds, "write_file", path=f"f{number}")
    assert deeds.describe().startswith("Changed: f0 (+2 -1), ")
    assert ", 2 more. Ran: ls (exit code 0)." in deeds.describe()


def test_what_looks_like_a_name_of_a_file_is_counted_below_the_names() -> None:
    diff = "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n+-- newer\n x\n"

    assert (count_marked(diff, "+"), count_marked(diff, "-"), count_marked("", "+")) == (2, 1, 0)


def test_calls_without_an_outcome_are_no_deeds() -> None:
    deeds = CallDeeds()
    call = ToolCall(id="c", name="shell", arguments={"command": "ls"})
    deeds.add([call, call], [ToolCallRecord(id="c", name="shell", args={}, timestamp="")])
    add(deeds, "shell", command="killed")
    add(deeds, "other", command="ls", code="1")
    assert deeds.describe() == ""
    add(deeds, "shell", command="false", code="2")

    assert deeds.describe() == "Ran: false (exit code 2)."
    assert shorten_list(["x"] * MAX_TOLD) == ["x"] * 6
    assert shorten_list(["x"] * 7) == ["x"] * 6 + ["1 more"]
