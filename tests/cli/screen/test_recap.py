"""Where a resumed session stood, said again in short."""

from typing import Any

import pytest

from ollm.cli.screen.recap import MAX_MESSAGE_CHARACTERS, render_call, render_message, render_recap, shorten_text
from tests.cli.screen.samples import PLAIN


def message(number: int, role: str, text: str, calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}, {"type": "thinking", "text": "hidden"}]
    return {"id": number, "role": role, "parts": parts, "toolCalls": calls or []}


def call(name: str = "shell", status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "args": {"command": "ls\n  -la"}, "result": None, **more}


def test_messages_are_shown_in_order_and_earlier_ones_counted() -> None:
    page = [message(3, "user", "hi"), message(4, "assistant", "Hello.", [call()])]

    assert render_recap(page, PLAIN) == "  2 earlier messages: /history all\n\n› hi\n\n● Hello.\n\n  ✓ Run ls -la\n\n"


def test_a_message_after_a_call_stands_apart_and_blocks_as_they_were_printed() -> None:
    answer = "Done:\n\n```\ncode\n```\n\n- a\n"
    page = [
        message(1, "user", "hi"),
        message(2, "assistant", "", [call()]),
        message(3, "tool", "x"),
        message(4, "assistant", answer),
    ]

    assert render_recap(page, PLAIN) == "› hi\n\n  ✓ Run ls -la\n\n● Done:\n\n   code\n\n   • a\n\n"


def test_what_was_attached_is_named_and_not_said_again() -> None:
    sent = message(1, "user", "look")
    sent["parts"] += [{"type": "text", "text": "\n\n[src/a.py]\nprint(1)\n"}, {"type": "text", "text": " and more"}]

    assert render_message(sent, PLAIN) == "› look and more\n  + src/a.py\n\n"


def test_a_page_begins_with_what_the_person_said() -> None:
    page = [message(3, "assistant", "Half."), message(4, "user", "hi"), message(5, "assistant", "Hello.")]

    assert render_recap(page, PLAIN) == "  3 earlier messages: /history all\n\n› hi\n\n● Hello.\n\n"


def test_one_earlier_message_is_one() -> None:
    assert render_recap([message(2, "user", "hi")], PLAIN).startswith("  1 earlier message: /history all\n")


def test_a_whole_session_says_nothing_of_earlier_messages() -> None:
    assert render_recap([message(1, "user", "hi")], PLAIN) == "› hi\n\n"


def test_an_answer_of_calls_alone_has_no_empty_paragraph() -> None:
    assert render_message(message(2, "assistant", " \n", [call()]), PLAIN) == "  ✓ Run ls -la\n"


@pytest.mark.parametrize("role", ["system", "tool"])
def test_what_was_not_said_by_either_is_left_out(role: str) -> None:
    assert render_message(message(1, role, "text"), PLAIN) == ""


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (call(), "  ✓ Run ls -la\n"),
        (call(result={"exitCode": 0}), "  ✓ Run ls -la\n"),
        (call(result={"exitCode": 2}), "  ✗ Run ls -la · exit 2\n"),
        (call(status="running"), "  … Run ls -la · running\n"),
        (call(status="denied"), "  ✗ Run ls -la · denied\n"),
        (
            call(status="denied", error={"type": "Denied", "message": "Not run: later"}),
            "  ✗ Run ls -la · Not run: later\n",
        ),
        (call(result={"exitCode": 0, "llmContent": "a\nb\n"}), "  ✓ Run ls -la\n  │ a\n  │ b\n"),
        (call("read_file", args={"path": "a.py"}), "  ✓ Read a.py\n"),
        (call("edit_file", args={"path": "a.py"}), "  ✓ Edit a.py\n"),
        (call("write_file", args={"path": "a.py"}), "  ✓ Create a.py (0 lines)\n"),
        (call("grep", args={"pattern": "x"}), "  ✓ Search for 'x'\n"),
        (call("glob", args={"pattern": "*"}), "  ✓ Find files matching *\n"),
        (call("ls", args={"path": "src"}), "  ✓ List src\n"),
        (call("ls", args={}), "  ✓ List .\n"),
        (call("web_fetch", args={"url": "http://x"}), "  ✓ Fetch http://x\n"),
        (call("web_search", args={"query": "q"}), "  ✓ Search the web for “q”\n"),
        (call("other", args={"path": "a"}), "  ✓ other\n"),
    ],
)
def test_a_call_is_said_in_the_words_it_had_and_with_its_outcome(found: dict[str, Any], line: str) -> None:
    assert render_call(found, PLAIN) == line


def test_a_long_command_is_cut() -> None:
    shown = render_call(call(args={"command": "x" * 500}), PLAIN)

    assert shown.count("x") < 80
    assert shown.endswith("x…\n")


def test_a_long_message_is_cut_with_the_way_to_the_rest() -> None:
    assert shorten_text("x" * MAX_MESSAGE_CHARACTERS) == "x" * 1500
    assert shorten_text("x" * (MAX_MESSAGE_CHARACTERS + 1)) == "x" * 1500 + " … (see /history)"


def test_a_long_paste_is_shown_by_its_first_and_last_lines() -> None:
    text = "\n".join([f"line {number}" for number in range(1, 201)] + ["Summarise it."])
    shown = render_recap([message(1, "user", text)], PLAIN)

    assert shown.split("\n")[:6] == [
        "› line 1", "  line 2", "  line 3", "  … 196 more lines (/history)", "  line 200", "  Summarise it.",
    ]  # fmt: skip
    assert "more lines" not in render_recap([message(1, "user", "a\n" * 6 + "b")], PLAIN)
