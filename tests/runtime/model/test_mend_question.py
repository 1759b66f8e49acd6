"""The question about code that has a bug, from the messages."""

from __future__ import annotations

from ollm.domain.messages import PromptMessage
from ollm.runtime.model.mend_question import find_mend_question, is_mending

STEP = "Exit code: 1\nTraceback\n\n{}:\n```\ndef f():\n    return 1\n```\n\nf() gives 1, but it should give 2. Now find the bug in {}."


def make_result(where: str, shown: str = "") -> PromptMessage:
    return PromptMessage(role="tool", tool_name="shell", content=STEP.format(shown or where, where))


def test_the_question_holds_the_code_and_what_is_wrong_and_nothing_of_the_output() -> None:
    asked = find_mend_question([PromptMessage(role="user", content="test_a.py fails."), make_result("a.py")])

    assert asked is not None
    assert asked.text == (
        "```python\ndef f():\n    return 1\n```\n\nf() gives 1, but it should give 2."
        " What has to be changed? Write the code without the bug."
    )
    assert (asked.begun, asked.heat) == ("a.py\n```python\n", 0.0)


def test_a_part_of_a_long_file_goes_back_into_it_and_later_questions_are_freer() -> None:
    said = [make_result("f in src/a.py"), make_result("f in src/a.py", "f in src/a.py was")]
    asked = find_mend_question(said)

    assert asked is not None
    assert (asked.begun, asked.heat) == ("src/a.py\n```python\n", 0.8)


def test_a_script_is_asked_for_in_its_own_language() -> None:
    asked = find_mend_question([make_result("run.sh")])

    assert asked is not None
    assert asked.begun == "run.sh\n```sh\n"
    assert asked.text.startswith("```sh\n")


def test_other_messages_ask_nothing() -> None:
    done = PromptMessage(role="tool", tool_name="shell", content="ok")

    assert find_mend_question([]) is None
    assert find_mend_question([make_result("a.py"), done]) is None
    assert find_mend_question([make_result("a.py", "b.py")]) is None
    assert is_mending([make_result("a.py"), done])
    assert not is_mending([done])
