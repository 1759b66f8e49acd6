"""Long things made short, with the way back to the whole."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.services.chat_compression.folding import (
    FOLDED_RESULT_TOKENS,
    cut_text,
    fold_calls,
    fold_result,
    format_recall_call,
    is_folded_line,
    make_folded_line,
    merge_folded_lines,
    write_digest,
)
from ollm.services.token_counting import TokenCounter
from tests.services import contexts as make

WAY = 'recall {"callId": "c1"}'
LINES = "".join(f"line {number}\n" for number in range(1, 101))
cost = TokenCounter().count_text


def test_a_call_is_named_before_a_message() -> None:
    assert format_recall_call(3, "c1") == 'recall {"callId": "c1"}'
    assert format_recall_call(3) == format_recall_call(3, "") == 'recall {"messageId": 3}'


@pytest.mark.parametrize("text", ["", "a", "a\nb", "x" * 50])
def test_what_fits_is_left_alone(text: str) -> None:
    assert cut_text(text, 50, len, WAY) == text


def test_a_cut_text_says_how_much_is_missing_and_where_it_begins() -> None:
    short = cut_text(LINES, 200, len, WAY)

    head, _, rest = short.partition("[... ")
    mark, _, tail = rest.partition("]\n")
    missing, characters, start = map(int, re.findall(r"\d+", mark.replace("c1", "")))
    assert len(short) <= 200
    assert LINES.startswith(head)
    assert LINES.rstrip("\n").endswith(tail.rstrip("\n"))
    assert start == head.count("\n") + 1
    assert LINES.splitlines()[start - 1] not in head.splitlines()
    assert len(head) + characters + len(tail) in (len(LINES), len(LINES) + 1)
    assert missing == LINES.count("\n") + 1 - head.count("\n") - tail.count("\n")


def test_a_single_long_line_is_cut_by_characters() -> None:
    text = "abcdefghij" * 100

    short = cut_text(text, 200, len, WAY)

    found = re.fullmatch(
        r'(\w+)\n\[\.\.\. (\d+) characters left out; recall \{"callId": "c1", "offset": (\d+)\} reads them\]\n(\w+)',
        short,
    )
    assert found
    assert (int(found[3]), int(found[2])) == (len(found[1]), 1000 - len(found[1]) - len(found[4]))
    assert len(found[1]) == pytest.approx(2 * len(found[4]), abs=3)


def test_with_no_room_only_the_line_about_it_stands() -> None:
    assert cut_text(LINES, 0, len, WAY) == f"[... 101 lines, {len(LINES)} characters omitted; {WAY} reads them]"
    assert cut_text(LINES, 0, len, "recall").endswith("omitted; recall reads them]")


def test_a_text_is_never_made_longer() -> None:
    assert cut_text("short text", 3, len, WAY) == "short text"


@given(st.text(st.sampled_from("ab \n漢é"), max_size=600), st.integers(0, 120))
def test_a_cut_text_is_the_text_or_within_its_bound_or_only_the_mark(text: str, tokens: int) -> None:
    short = cut_text(text, tokens, cost, WAY)

    assert cost(short) <= cost(text)
    if short != text and not short.startswith("[... "):
        assert cost(short) <= tokens


def test_an_old_result_becomes_a_few_lines_and_loses_its_images() -> None:
    old = PromptMessage(
        role="tool", content=LINES * 3, call_id="c1", sources=(3,), images=(ImagePart("image/png", "aGk="),)
    )

    folded = fold_result(old, cost)

    assert cost(folded.content) <= FOLDED_RESULT_TOKENS
    assert folded.images == ()
    assert (folded.call_id, folded.sources) == ("c1", (3,))
    assert '"callId": "c1"' in folded.content


def test_a_result_that_was_cut_before_is_not_cut_twice() -> None:
    once = PromptMessage(role="tool", content=cut_text(LINES * 3, 100, cost, WAY), call_id="c1")
    long = PromptMessage(role="tool", content=cut_text(LINES * 3, 200, cost, WAY), call_id="c1")

    assert fold_result(once, cost) is once
    assert cost(fold_result(long, cost).content) <= FOLDED_RESULT_TOKENS


def test_only_long_texts_among_the_arguments_are_shortened() -> None:
    arguments = {"path": "a.py", "content": LINES, "edits": [{"old": LINES, "n": 1}], "flag": True, "none": None}
    call = ToolCall(id="c1", name="write_file", arguments=arguments)

    (folded,) = fold_calls(make.assistant(2, "Writing", call), 60, cost).calls

    assert folded.arguments["path"] == "a.py"
    assert (folded.arguments["flag"], folded.arguments["none"]) == (True, None)
    assert 'recall {"messageId": 2' in folded.arguments["content"]
    assert 'recall {"messageId": 2' in folded.arguments["edits"][0]["old"]
    assert folded.arguments["edits"][0]["n"] == 1
    assert arguments["content"] == LINES
    plain = make.assistant(2, "no calls")
    assert fold_calls(plain, 1, cost) is plain


def test_a_folded_line_tells_who_said_and_called_what() -> None:
    call = ToolCall(id="c1", name="shell", arguments={"other": "x", "command": "make test"})
    messages = [
        make.assistant(2, "I   shall\ntry.", call),
        make.result(3, "c1", "exit 2", "shell", failed=True),
        make.result(4, "c2", "fine", ""),
        make.assistant(5, ""),
    ]

    line = make_folded_line(messages)

    assert line.content == (
        "[Folded messages 2-5: said: I shall try.; called shell(make test); shell failed: exit 2; tool gave: fine]"
    )
    assert (line.role, line.sources) == ("system", (2, 3, 4, 5))
    assert is_folded_line(line)


def test_folding_a_line_again_keeps_what_it_told() -> None:
    once = make_folded_line([make.assistant(2, "first")])

    assert make_folded_line([once, make.assistant(3, "second")]).content == (
        "[Folded messages 2-3: said: first; said: second]"
    )


def test_a_line_is_bounded_however_much_was_said() -> None:
    line = make_folded_line([make.assistant(number, "word " * 100) for number in range(50)])

    assert len(line.content) <= 240 + len("[Folded messages 0-49: ]")


def test_only_the_engine_s_lines_are_folded_lines() -> None:
    assert not is_folded_line(make.user(1, "[Folded messages 1: x]"))
    assert not is_folded_line(make.SYSTEM)


def test_merged_lines_keep_the_numbers_only() -> None:
    lines = [make_folded_line([make.assistant(number, "x")]) for number in (2, 3, 9)]

    assert merge_folded_lines(lines).content == "[Folded messages 2-3, 9; recall brings them back]"
    assert merge_folded_lines(lines).sources == (2, 3, 9)
    assert is_folded_line(merge_folded_lines(lines))


def test_a_digest_has_a_line_for_each_group_in_order() -> None:
    groups = [(make.assistant(1, "one"),), (make.assistant(2, "two"), make.result(3, "c", "ok", "ls"))]

    assert write_digest(groups, 1000, cost) == "- #1: said: one\n- #2-3: said: two; ls gave: ok"
    assert write_digest([], 10, cost) == ""


def test_a_digest_without_room_keeps_the_newest_and_counts_the_rest() -> None:
    groups = [(make.assistant(number, f"step {number}"),) for number in range(1, 21)]
    line = len("- #20: said: step 20")

    assert write_digest(groups, 2 * line, len) == "- and 18 earlier steps\n- #19: said: step 19\n- #20: said: step 20"
    assert write_digest(groups, 2 * line - 1, len).startswith("- and 19 earlier steps\n")
    assert write_digest(groups, 0, len) == "- and 20 earlier steps"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"path": "a.py", "command": "x"}, "a.py"),
        ({"pattern": "TODO"}, "TODO"),
        ({"url": "http://x"}, "http://x"),
        ({"query": "q" * 99}, "q" * 60),
        ({"path": 7}, ""),
        ({}, ""),
    ],
)
def test_a_call_is_told_by_its_main_argument(arguments: dict[str, object], named: str) -> None:
    line = make_folded_line([make.assistant(1, "", ToolCall(id="c", name="t", arguments=arguments))])

    assert line.content == f"[Folded messages 1: called t({named})]"


@pytest.mark.parametrize(
    ("text", "way", "size", "cut"),
    [
        (
            LINES[:231],
            WAY,
            160,
            (
                "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n"
                '[... 23 lines, 173 characters omitted; recall {"callId": "c1", "startLine": 7} reads them]\n'
                "line 29\nline 30\n"
            ),
        ),
        (LINES[:231], "", 60, "line 1\nline 2\nline 3\nline 4\nline 5\n[…]\nline 29\nline 30\n"),
        (LINES[:231], "", 30, "line 1\nline 2\n[…]\nline 30\n"),
        (LINES[:231], "", 9, "[…]"),
        (
            LINES[:231],
            "recall",
            100,
            "line 1\nline 2\nline 3\nline 4\n[... 26 lines, 195 characters omitted; recall reads them]\nline 30\n",
        ),
        ("abcdefghij" * 20, "", 40, "abcdefghijabcdefghij\n[…]\nabcdefghij"),
        ("abcdefghij" * 20, "", 12, "abcd\n[…]\nij"),
        (f"ab\n{'x' * 100}\ncd", "", 40, f"ab\n{'x' * 17}\n[…]\nxxxxxxx\ncd"),
    ],
)
def test_what_is_left_of_a_text(text: str, way: str, size: int, cut: str) -> None:
    assert cut_text(text, size, len, way) == cut
    assert len(cut) <= size


def test_how_much_of_each_message_a_line_tells() -> None:
    told = make_folded_line([make.assistant(1, "a" * 200)]).content
    assert told == f"[Folded messages 1: said: {'a' * 90}]"
    assert (
        make_folded_line([make.result(1, "c", "b" * 200, "ls")]).content == f"[Folded messages 1: ls gave: {'b' * 60}]"
    )
    many = [make.assistant(number, "c" * 80) for number in range(1, 9)]
    assert make_folded_line(many).content == f"[Folded messages 1-8: {'; '.join(['said: ' + 'c' * 80] * 3)[:240]}]"
    assert write_digest([tuple(many)], 1000, len) == f"- #1-8: {'; '.join(['said: ' + 'c' * 80] * 3)[:200]}"
