"""The messages to go back to, as a list."""

from typing import Any

from ollm.cli.screen.rewind import CHOICE_HINT, CONFIRM_HINT, HINT, RewindList, RewindTarget, collect_user_messages


def targets(count: int) -> RewindList:
    return RewindList([RewindTarget(number=2 * n + 1, text=f"message {n}") for n in range(count)])


def lines(found: RewindList, width: int = 40) -> list[str]:
    return [text for _, text in found.render_lines(width)]


def test_the_newest_message_is_chosen_first_and_moving_stays_inside() -> None:
    found = targets(3)
    assert found.chosen.number == 5
    found.move(1)
    assert found.chosen.number == 5
    found.move(-1)
    assert found.chosen.number == 3
    found.move(-9)
    assert found.chosen.number == 1


def test_the_chosen_one_is_marked_and_only_so_many_are_shown() -> None:
    found = targets(20)
    found.move(-10)
    shown = found.render_lines(40)

    assert [text for _, text in shown[1:9]] == [f" #{2 * n + 1} message {n}\n" for n in range(5, 13)]
    assert [text for style, text in shown if style == "class:chosen"] == [" #19 message 9\n"]
    assert shown[0] == ("class:hint", "Rewind to before which message?\n")
    assert shown[-1] == ("class:hint", HINT)
    assert len(lines(targets(20))) == 11


def test_a_line_is_cut_at_the_width() -> None:
    assert lines(RewindList([RewindTarget(number=1, text="x" * 99)]), 20)[1] == " #1 " + "x" * 15 + "\n"


def test_what_would_be_lost_is_said_before_it_is_and_moving_takes_it_back() -> None:
    found = targets(2)
    found.warning = "This removes 3 messages."

    assert lines(found)[-2:] == ["This removes 3 messages.\n", CONFIRM_HINT]
    found.move(-1)
    assert found.warning == ""
    assert lines(found)[-2:] == ["", HINT]


def test_where_files_would_go_back_too_it_is_chosen_what_does() -> None:
    found = targets(2)
    found.warning = "This removes message 3.\n\n2 files would be put back:\n" + "- `M` a\n" * 20
    found.scopes = ("both", "talk", "files")

    shown = found.render_lines(40)
    assert [text for style, text in shown if style == "class:chosen"] == [" #3 message 1\n", " Talk and files\n"]
    assert [text for style, text in shown if style == "bold"][-1] == "…\n"
    assert shown[-1] == ("class:hint", CHOICE_HINT)
    found.move(9)
    assert (found.scope, found.chosen.number) == ("files", 3)
    found.move(-1)
    assert found.scope == "talk"
    assert "`" not in "".join(lines(found))


def test_only_what_the_person_said_can_be_gone_back_to() -> None:
    history: list[dict[str, Any]] = [
        {"id": 1, "role": "user", "parts": [{"type": "text", "text": "a\n  b"}, {"type": "image"}]},
        {"id": 2, "role": "assistant", "parts": [{"type": "text", "text": "c"}]},
        {"id": 3, "role": "user", "parts": [{"type": "text", "text": "\x1b" + "d" * 400}]},
    ]
    found = collect_user_messages(history)

    assert [target.number for target in found] == [1, 3]
    assert found[0].text == "a b"
    assert found[1].text.startswith("\\x1bd")
    assert len(found[1].text) == 300
