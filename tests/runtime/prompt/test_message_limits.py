"""What one message may take of the window."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.runtime.prompt.messages import MIN_RESULT_TOKENS, MessageLimiter, cut_message, shrink_last_step
from ollm.services.budget import compute_budget, compute_result_cap, compute_step_cap
from ollm.services.token_counting import TokenCounter
from tests.covers import covers
from tests.runtime.prompt.test_prompt import Talk, filler


@covers("T9.1", "T9.3")
def test_a_long_result_takes_a_quarter_of_what_is_available_and_says_how_to_read_the_rest() -> None:
    talk = Talk()
    talk.user("Go")
    talk.step(filler(2000))

    content = talk.prompt.build_request_messages()[-1].content
    assert talk.counter.count_text(content) <= talk.prompt.compute_budget().available // 4
    first_missing = content.split("[...")[0].count("\n") + 1
    assert f'recall {{"callId": "c1-0", "startLine": {first_missing}}} reads them' in content
    assert "characters omitted" in content
    assert content.startswith("line 0 says")
    assert content.endswith("line 1999 says nothing of note to anybody")


def test_the_results_of_one_step_take_half_of_what_is_available() -> None:
    talk = Talk()
    talk.user("Go")
    talk.step("short", *[filler(500)] * 5)

    results = [message for message in talk.prompt.build_request_messages() if message.role == "tool"]
    assert sum(talk.counter.count_text(m.content) for m in results) <= talk.prompt.compute_budget().available // 2
    assert results[0].content == "short"


counter = TokenCounter()
LINES = "\n".join(f"line {number} of the output" for number in range(400))


def step(*outputs: str, content: str = "Trying.") -> list[PromptMessage]:
    calls = tuple(
        ToolCall(id=f"c{n}", name="shell", arguments={"command": "make"}) for n, _ in enumerate(outputs, start=1)
    )
    head = PromptMessage(role="assistant", content=content, calls=calls, sources=(2,))
    results = [
        PromptMessage(role="tool", content=output, call_id=f"c{n}", tool_name="shell", sources=(2 + n,))
        for n, output in enumerate(outputs, start=1)
    ]
    return [PromptMessage(role="user", content="go", sources=(1,)), head, *results]


def size(messages: Sequence[PromptMessage]) -> int:
    return counter.count_messages(messages)


def test_a_message_within_its_cap_is_left_alone_and_a_longer_one_names_the_way() -> None:
    short, long = step("ok")[2], step(LINES)[2]

    assert cut_message(short, 50, counter) == short
    cut = cut_message(long, 100, counter)
    assert counter.count_text(cut.content) <= 100
    assert 'recall {"callId": "c1", "startLine": ' in cut.content


def test_a_list_with_the_best_first_is_cut_from_its_end() -> None:
    found = "\n".join(f"message {number} (user; has port): the port of the parser is {number}." for number in range(30))
    entry = PromptMessage(role="tool", content=found, call_id="c1", tool_name="recall", sources=(3,))

    *kept, omission = cut_message(entry, 150, counter).content.splitlines()

    assert len(kept) > 3
    assert kept == found.splitlines()[: len(kept)]
    assert f'recall {{"callId": "c1", "startLine": {len(kept) + 1}}} reads them' in omission


def test_results_share_what_a_step_may_take_and_each_gets_a_least() -> None:
    budget, limiter = compute_budget(4096, 500), MessageLimiter(counter)
    limiter.begin_step(budget, 0)
    results = step(*[LINES] * 30)[2:]
    cut = [limiter.limit_result(entry, budget, 30 - place, 0) for place, entry in enumerate(results)]

    sizes = [counter.count_text(entry.content) for entry in cut]
    assert all(found <= max(MIN_RESULT_TOKENS, compute_result_cap(budget)) for found in sizes)
    assert sizes[-1] > 0
    assert sum(sizes) <= compute_step_cap(budget) + 30 * MIN_RESULT_TOKENS


def test_a_user_s_message_is_cut_only_over_half_of_what_there_is() -> None:
    budget, limiter = compute_budget(4096, 500), MessageLimiter(counter)
    fits = PromptMessage(role="user", content="word " * (budget.available // 2), sources=(1,))
    longer = PromptMessage(role="user", content="word " * (budget.available // 2 + 2), sources=(1,))

    assert limiter.limit_user_message(fits, budget) is fits
    cut = limiter.limit_user_message(longer, budget)
    assert counter.count_text(cut.content) <= budget.available // 4


@pytest.mark.parametrize("hardness", [0, 1])
def test_the_last_step_is_made_smaller_and_the_request_is_not_touched(hardness: int) -> None:
    messages = step(LINES, "short", LINES)
    over = size(messages) // 2

    smaller = shrink_last_step(messages, over, hardness, counter)

    assert smaller[0] == messages[0]
    assert len(smaller) == len(messages)
    assert smaller[3].content == "short"
    assert size(messages) - size(smaller) >= over - 40


def test_harder_at_last_calls_are_left_out_between_the_first_and_the_last() -> None:
    messages = step(*["ok"] * 40)

    smaller = shrink_last_step(messages, size(messages) * 3 // 4, 2, counter)

    head = smaller[1]
    assert 1 <= len(head.calls) < 40
    assert head.calls[0].id == "c1"
    assert "more calls, c" in head.content
    assert [entry.call_id for entry in smaller[2:]] == [call.id for call in head.calls]
    assert size(smaller) <= size(messages) // 4 + 60
    few = step("ok", "ok")
    assert shrink_last_step(few, 10_000, 2, counter) == tuple(few)


def test_where_nothing_has_room_one_call_stands_and_a_line_for_the_others() -> None:
    messages = step("one", "two", "three")

    _, head, *results = shrink_last_step(messages, 100_000, 2, counter)

    assert [call.id for call in head.calls] == ["c1"]
    assert head.content == (
        "Trying.\n[2 more calls, c2 to c3, were made and are left out with their results; "
        'recall {"callId": "c2"} reads one]'
    )
    assert [entry.content for entry in results] == ["one"]
    most = shrink_last_step(step("one", "two " * 90, "three"), 20, 2, counter)
    assert [call.id for call in most[1].calls] == ["c1", "c3"]
    assert [entry.content for entry in most[2:]] == ["one", "three"]
    assert most[1].content.startswith("Trying.\n[1 more calls, c2 to c2, were made")
