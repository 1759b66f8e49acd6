"""How full the context is."""

from __future__ import annotations

import math

import pytest

from ollm.domain.context import Usage
from ollm.domain.events import PromptTruncated
from ollm.runtime.prompt.token_meter import Meter
from ollm.services.budget import compute_budget
from ollm.services.token_counting import TokenCounter
from tests.covers import covers
from tests.runtime.prompt.test_instructions import TOOLS
from tests.runtime.prompt.test_prompt import Talk


@covers("D204")
def test_exact_counts_of_the_server_are_used_and_learnt_from() -> None:
    talk = Talk()
    talk.user("Hello there, " * 50)
    sent = talk.prompt.used_tokens
    talk.prompt.build_request_messages()
    talk.prompt.observe_usage(Usage(prompt_tokens=sent * 2))

    assert talk.prompt.used_tokens == sent * 2
    assert 1.9 < talk.counter.factor < 2.1
    talk.assistant("Hi.")
    assert talk.prompt.used_tokens > sent * 2


@covers("D612")
@pytest.mark.parametrize("reported", [0, -1, 1, 10**9])
def test_missing_and_absurd_counts_mean_unknown(reported: int) -> None:
    talk = Talk()
    talk.user("Hello there, " * 50)
    talk.prompt.build_request_messages()
    talk.prompt.observe_usage(Usage(prompt_tokens=300))
    exact = talk.prompt.used_tokens
    talk.prompt.build_request_messages()

    assert talk.prompt.observe_usage(Usage(prompt_tokens=reported)) is None
    assert talk.prompt.used_tokens >= exact


def test_a_count_below_that_of_an_earlier_request_proves_a_cut_prompt() -> None:
    talk = Talk(window=8192)
    talk.user("Hello there, " * 400)
    talk.prompt.build_request_messages()
    assert talk.prompt.observe_usage(Usage(prompt_tokens=1800)) is None
    talk.assistant("Hi.")
    talk.user("And again, " * 200)
    talk.prompt.build_request_messages()
    proof = talk.prompt.observe_usage(Usage(prompt_tokens=1500))

    assert proof is not None
    assert proof.read_tokens == 1500
    assert talk.prompt.model.window == 1800


def test_a_server_that_leaves_out_what_it_had_cached_proves_nothing() -> None:
    talk = Talk(window=8192)
    talk.user("Hello there, " * 400)
    talk.prompt.build_request_messages()
    talk.prompt.observe_usage(Usage(prompt_tokens=1800))
    talk.assistant("Hi.")
    talk.prompt.build_request_messages()

    assert talk.prompt.observe_usage(Usage(prompt_tokens=40)) is None
    assert talk.prompt.used_tokens >= 1800
    assert talk.prompt.model.window == 8192


def test_a_server_that_always_says_the_same_is_not_believed() -> None:
    talk = Talk()
    for _ in range(10):
        talk.user("Hello there, " * 20)
        talk.prompt.build_request_messages()
        talk.prompt.observe_usage(Usage(prompt_tokens=20))

    assert talk.prompt.used_tokens == talk.counter.convert_to_tokens(
        talk.prompt.meter.prefix_units + talk.prompt.meter.message_units
    )
    assert talk.counter.factor == 1.0


def test_a_server_that_says_it_cut_the_prompt_is_believed() -> None:
    talk = Talk()
    talk.user("Hello there")
    talk.prompt.build_request_messages()

    assert talk.prompt.observe_usage(Usage(), said_so=True) is not None
    assert talk.prompt.model.window == 4096


def test_an_exact_count_over_the_reported_one_proves_a_cut_prompt_only_when_it_is_clear() -> None:
    for exact, cut in ((1010, False), (1030, True)):
        talk = Talk(window=8192)
        talk.user("Hello there, " * 300)
        talk.prompt.build_request_messages()
        assert (talk.prompt.observe_usage(Usage(prompt_tokens=1000), exact) is not None) == cut


def meter(front: float = 100.0, spoken: float = 200.0) -> Meter:
    made = Meter(TokenCounter())
    made.set_prefix_units(front)
    made.add_units(spoken)
    return made


def counted(made: Meter, tokens: int) -> PromptTruncated | None:
    made.mark_sent()
    return made.observe_usage(Usage(prompt_tokens=tokens))


def test_a_turn_goes_on_from_the_count_of_the_last_one() -> None:
    talk = Talk(window=8192)
    talk.prompt.set_tools(TOOLS)
    for _ in range(2):
        talk.user("Hello there, " * 100)
        talk.prompt.build_request_messages()
        talk.prompt.observe_usage(Usage(prompt_tokens=int(talk.prompt.used_tokens * 1.1)))
        talk.assistant("Hi.")
    exact = talk.prompt.meter.counted_prompt
    talk.user("And now?")  # the factor has moved; what stands before the messages has not

    assert exact is not None
    assert talk.prompt.meter.counted_prompt == exact
    assert talk.prompt.max_answer_tokens > 8192 - talk.prompt.used_tokens - 32


def test_another_process_goes_on_from_a_count_where_nothing_before_the_messages_has_changed() -> None:
    first = meter()
    counted(first, 450)
    known = first.counted_prompt
    assert known is not None
    assert known.tokens == 450

    later = meter(100, 250)
    later.resume_count(known)
    assert later.counted_prompt is None  # a server that never counted for us may count otherwise
    later.counter.calibrate(1.0, 1)
    later.resume_count(known)
    assert later.total_tokens == 450 + 75  # of what came since, by how short the last estimate fell
    later.set_prefix_units(120)
    assert later.counted_prompt is None
    later.set_prefix_units(100)
    assert later.total_tokens == 525
    assert later.counted_prompt == known
    later.mark_sent()
    assert later.observe_usage(Usage(prompt_tokens=300)) is None  # the server may be another one: no proof of a cut

    later.resume_count(known)
    later.restart(250)
    assert later.counted_prompt is None


def test_a_count_that_stands_still_while_the_prompt_grows_is_a_plateau() -> None:
    made = meter()
    counted(made, 300)
    made.add_units(63)
    assert counted(made, 301) is None
    made = meter()
    counted(made, 300)
    made.add_units(64)
    assert counted(made, 301) is not None
    made = meter()
    counted(made, 300)
    made.add_units(100)
    assert counted(made, 319) is not None
    made = meter()
    counted(made, 300)
    made.add_units(100)
    assert counted(made, 320) is None


def test_a_server_that_counts_more_makes_the_estimate_larger_up_to_a_bound() -> None:
    made = meter()
    made.distrust()
    assert made.total_tokens == 345
    for _ in range(10):
        made.distrust()
    assert made.total_tokens == 450


def test_an_implausible_count_leaves_both_in_doubt() -> None:
    made = meter()
    counted(made, 300)
    made.add_units(10)
    made.mark_sent()
    assert made.observe_usage(Usage(prompt_tokens=100_000)) is None

    assert made.total_tokens == 310
    assert made.compute_answer_tokens(compute_budget(4096, 0)) < 4096 - 310 - 16 - 5


@pytest.mark.parametrize(("window", "prompt"), [(4096, 2600), (4096, 3400), (8192, 5700)])
def test_an_answer_has_room_also_where_the_server_never_counted(window: int, prompt: int) -> None:
    made, least = meter(0, prompt), window - int(window * 11 / 12)
    state = compute_budget(window, 0)
    assert made.compute_answer_tokens(state) == least - 16  # nothing is known of the vocabulary yet
    counted(made, 0)  # a server that reports no tokens, or none at all

    assert made.counter.factor == 1.0
    assert made.compute_answer_tokens(state) == max(least, window - prompt - 16 - math.ceil(prompt / 4))
    made.add_units(0, 2 * window)  # a conversation in Chinese
    assert made.compute_answer_tokens(state) == least
