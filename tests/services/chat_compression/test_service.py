"""Compression: what stays, what goes, and what stands for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.context import Strategy
from ollm.domain.messages import PromptMessage, ToolCall
from ollm.services.chat_compression.compression_state import CompressionOptions, Summarise
from ollm.services.chat_compression.service import ChatCompressionService
from ollm.services.token_counting import TokenCounter
from tests.covers import covers
from tests.services import contexts as make

STRATEGIES: tuple[Strategy, ...] = ("summarize", "truncate", "hybrid")
strategies = st.sampled_from(STRATEGIES)
models = st.sampled_from([None, make.good, make.broken])
counter = TokenCounter()


def options(strategy: Strategy = "hybrid", recent: int = 300, **more: object) -> CompressionOptions:
    return CompressionOptions(strategy=strategy, preserve_recent_tokens=recent, **more)  # type: ignore[arg-type]


def squeezed(messages: list[PromptMessage], wanted: CompressionOptions, model: Summarise | None = make.good):
    return asyncio.run(ChatCompressionService(counter, model).compress(messages, wanted))


@covers("P10", "S3.1", "S3.7")
@given(make.contexts(), st.integers(1, 5000), st.floats(0.01, 1))
def test_over_the_threshold_compression_is_needed(messages: list[PromptMessage], limit: int, share: float) -> None:
    """Feature: services-sessions, Property 10: Compression trigger threshold."""
    needed = ChatCompressionService(counter).should_compress(messages, limit, share)

    assert needed == (counter.count_messages(messages) > share * limit)


@covers("P11", "S3.2", "S3.3", "S3.6", "D173")
@given(make.contexts(), strategies, st.integers(0, 600), models)
def test_the_system_prompt_and_the_newest_tokens_stay_as_they_are(
    messages: list[PromptMessage], strategy: Strategy, recent: int, model: Summarise | None
) -> None:
    """Feature: services-sessions, Property 11: Compression preserves critical messages."""
    result = squeezed(messages, options(strategy, recent), model)

    newest: list[PromptMessage] = []
    left = recent
    for message in reversed(messages[1:]):
        left -= counter.count_message(message)
        if left < 0:
            break
        newest.insert(0, message)
    assert result.compressed_messages[0] == messages[0]
    assert list(result.compressed_messages[len(result.compressed_messages) - len(newest) :]) == newest


@covers("P12", "S3.4", "S3.5", "D178", "D179", "D180", "D181")
@given(make.contexts(), strategies, st.integers(0, 600), models)
def test_a_compression_makes_the_context_smaller_or_leaves_it_alone(
    messages: list[PromptMessage], strategy: Strategy, recent: int, model: Summarise | None
) -> None:
    """Feature: services-sessions, Property 12: Compression reduces token count."""
    result = squeezed(messages, options(strategy, recent), model)

    if result.skipped:
        assert list(result.compressed_messages) == messages
        assert result.compressed_token_count == result.original_token_count
    else:
        assert result.compressed_token_count < result.original_token_count == counter.count_messages(messages)
        assert counter.count_messages(result.compressed_messages) == result.compressed_token_count


@covers("P12", "S3.4")
@given(make.contexts(), strategies, st.integers(0, 200), st.integers(600, 3000))
def test_a_long_old_answer_is_always_made_smaller(
    messages: list[PromptMessage], strategy: Strategy, recent: int, words: int
) -> None:
    """Feature: services-sessions, Property 12: Compression reduces token count."""
    story = " ".join(f"word{number}" for number in range(words))
    told = [PromptMessage(role="user", content="Tell me."), PromptMessage(role="assistant", content=story)]
    newest = [PromptMessage(role="user", content="And now?"), PromptMessage(role="assistant", content="now " * recent)]

    result = squeezed([*messages, *told, *newest], options(strategy, recent))

    assert not result.skipped
    assert result.compressed_token_count < result.original_token_count
    assert story not in "".join(message.content for message in result.compressed_messages)


@covers("H37")
@given(make.contexts(), strategies, st.integers(0, 300), models)
def test_user_messages_and_pairs_of_call_and_result_survive(
    messages: list[PromptMessage], strategy: Strategy, recent: int, model: Summarise | None
) -> None:
    result = squeezed(messages, options(strategy, recent), model)

    assert [m for m in result.compressed_messages if m.role == "user"] == [m for m in messages if m.role == "user"]
    asked = {call.id for message in result.compressed_messages for call in message.calls}
    answered = {message.call_id for message in result.compressed_messages if message.role == "tool"}
    assert asked == answered


@given(make.contexts(), strategies, models)
def test_every_message_is_in_the_context_or_cited_in_it(
    messages: list[PromptMessage], strategy: Strategy, model: Summarise | None
) -> None:
    result = squeezed(messages, options(strategy, 50), model)

    cited = {number for message in result.compressed_messages for number in message.sources}
    assert cited == {number for message in messages for number in message.sources}
    assert set(result.message_ids) <= cited


@covers("H438", "D174")
def test_hybrid_folds_old_tool_output_before_it_asks_a_model() -> None:
    messages = make.talk(6)

    result = squeezed(messages, options(target_tokens=counter.count_messages(messages) * 3 // 4), make.broken)

    assert result.checkpoints == ()
    old = next(message for message in result.compressed_messages if message.role == "tool")
    assert 'recall {"callId": "c1", "startLine": 4}' in old.content
    assert "characters omitted" in old.content


@covers("H36", "H421", "H437")
def test_hybrid_summarises_only_the_oldest_part_that_is_needed() -> None:
    messages = make.talk(40, lines=8)
    total = counter.count_messages(messages)

    result = squeezed(messages, options(target_tokens=total * 2 // 3))

    assert result.created is not None
    assert result.compressed_token_count <= total * 2 // 3
    assert result.created.message_ids[0] == 2
    assert max(result.created.message_ids) < 100
    assert make.MINUTES in result.created.text
    assert result.compressed_messages[1] == result.created.message


@covers("D200")
def test_summarize_makes_one_checkpoint_of_everything_old_and_of_earlier_ones() -> None:
    first = squeezed(make.talk(6), options("summarize"))
    later = [make.SYSTEM, *first.compressed_messages[2:], *make.talk(12)[25:]]

    second = squeezed(later, options("summarize", checkpoints=first.checkpoints))

    assert len(second.checkpoints) == 1
    assert set(first.checkpoints[0].message_ids) < set(second.checkpoints[0].message_ids)


@covers("D201")
def test_truncate_leaves_a_line_with_the_numbers_and_asks_no_model() -> None:
    messages = make.talk(6)

    result = squeezed(messages, options("truncate"), make.broken)

    line = next(message for message in result.compressed_messages if message.content.startswith("[Folded messages"))
    assert line.sources == (2, 3, 4)
    assert "read_file(src/part_1.py)" in line.content
    assert result.checkpoints == ()


@covers("D201")
@given(make.contexts(), st.integers(0, 1500))
def test_truncate_alone_gets_under_its_target_or_to_the_least_there_can_be(
    messages: list[PromptMessage], target: int
) -> None:
    least = counter.count_messages(ChatCompressionService(counter).truncate(messages, 0))

    shorter = ChatCompressionService(counter).truncate(messages, target)

    total = counter.count_messages(shorter)
    assert total <= max(target, least) or shorter == messages
    assert shorter[0] == messages[0]
    cited = {number for message in shorter for number in message.sources}
    assert cited == {number for message in messages for number in message.sources}


@covers("D201")
@pytest.mark.parametrize("target", [150, 200, 324])
def test_truncate_alone_removes_the_oldest_also_what_the_user_said(target: int) -> None:
    shorter = ChatCompressionService(counter).truncate(make.talk(12), target)

    assert counter.count_messages(shorter) <= target
    assert shorter[-1] == make.talk(12)[-1]
    assert 1 in shorter[1].sources


@covers("D610", "D611", "S10.3")
def test_without_a_model_a_digest_written_by_the_engine_stands_in() -> None:
    result = squeezed(make.talk(20, lines=4), options(), make.broken)

    assert result.fallback == "The server broke off."
    assert result.created is not None
    assert result.created.engine_written
    assert "read_file(src/part_1.py)" in result.created.text or "earlier steps" in result.created.text


@covers("S10.3")
def test_whatever_the_model_s_port_throws_the_context_gets_smaller() -> None:
    async def odd(messages: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        yield "Goal:"
        raise RuntimeError("no such thing")

    result = squeezed(make.talk(20, lines=4), options(), odd)

    assert (result.fallback, result.skipped) == ("no such thing", "")
    assert result.compressed_token_count < result.original_token_count


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   ",
        "ok",
        "x " * 4000,
        "<think>hm, what do they want from me here?</think>",
        "I'm sorry, but I can't help with that request. As an AI model I am not able to write it.",
        "lorem <|x|> }}{{ ;;; qq zx zx zx " * 12,
        "Goal:\n- The user and the assistant talked about it.\nOpen points:\n- They will go on with it.",
        "Goal:\n" + "\n".join(f"- item {n} of a list that does not end" for n in range(900)),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_bad_summary_is_refused_after_one_more_try(answer: str) -> None:
    asked: list[str] = []

    async def bad(messages: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        asked.append(messages[-1].content)
        yield answer

    result = squeezed(make.talk(20, lines=4), options(), bad)

    assert len(asked) == 2
    assert "The last attempt was not usable" in asked[1]
    assert result.created is not None
    assert result.created.engine_written


def test_the_second_answer_is_used_when_the_first_was_bad() -> None:
    answers = iter(["", make.MINUTES])

    async def wavering(messages: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        yield next(answers)

    result = squeezed(make.talk(20, lines=4), options(), wavering)

    assert result.fallback == ""
    assert result.created is not None
    assert not result.created.engine_written
    assert any(line in result.created.text for line in make.MINUTES.splitlines() if len(line) > 10)


def test_cancelling_a_summary_cancels_the_compression() -> None:
    async def cancelled(messages: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        raise asyncio.CancelledError
        yield ""

    with pytest.raises(asyncio.CancelledError):
        squeezed(make.talk(20), options("summarize"), cancelled)


def test_facts_of_the_user_and_of_a_failed_command_are_in_the_checkpoint() -> None:
    call = ToolCall(id="c9", name="shell", arguments={"command": "make"})
    messages = [
        make.SYSTEM,
        make.user(
            1, "Port is 8443, the config is deploy/app.toml and `retryCount` must stay; see https://x.test/a?b=1"
        ),
        make.assistant(2, "Trying.", call),
        make.result(3, "c9", "Exit code: 2\nld.so: error: undefined symbol my_symbol", "shell", failed=True),
        *make.talk(20, lines=4)[5:],
    ]

    result = squeezed(messages, options(locked=("Keep SQLite as storageBackend",)))

    assert result.created is not None
    for fact in ("8443", "deploy/app.toml", "retryCount", "https://x.test/a?b=1", "undefined symbol", "storageBackend"):
        assert fact in result.created.text


def wishes(count: int, length: int = 12) -> list[PromptMessage]:
    messages = [make.SYSTEM]
    for number in range(1, 2 * count, 2):
        messages += [
            make.user(
                number, f"Wish {number}: use port {7000 + number}. " + "Please do all of it with care. " * length
            ),
            make.assistant(number + 1, "Done, and looked at twice, as was asked for. " * 6),
        ]
    return messages


def test_the_message_being_worked_on_stays_whole_wherever_it_stands() -> None:
    messages = wishes(12)

    result = squeezed(messages, options(recent=0, ledger_tokens=1200, request=5))

    assert messages[5] in result.compressed_messages
    assert result.created is not None
    assert 5 not in [line.number for line in result.created.requests]


def test_our_own_markers_are_no_facts() -> None:
    call = ToolCall(id="c9", name="shell", arguments={"command": "make"})
    messages = [
        make.SYSTEM,
        make.user(1, 'Look [... 31 lines, 878 characters left out; recall {"messageId": 1107} reads them] at src/x.py'),
        make.assistant(2, "Trying. " * 80, call),
        make.result(
            3, "c9", 'Exit code: 2\n[... 12 lines, 4242 characters left out; recall {"callId": "c9"} reads them]'
        ),
        *make.talk(20, lines=4)[5:],
    ]

    result = squeezed(messages, options())

    assert result.created is not None
    facts = result.created.text.partition("Facts: ")[2]
    assert "src/x.py" in facts
    assert not any(own in facts for own in ("878", "1107", "messageId", "4242", "callId", "left out"))


@covers("D192", "D193")
async def test_the_methods_of_the_strategies_can_be_used_alone() -> None:
    messages = make.talk(8)
    service = ChatCompressionService(counter, make.good)
    total = counter.count_messages(messages)

    for shorter in (
        service.truncate(messages, total // 2),
        await service.summarize(messages, total // 2),
        await service.hybrid(messages, options()),
    ):
        assert shorter[0] == make.SYSTEM
        assert shorter[-1] == messages[-1]
        assert counter.count_messages(shorter) < total


def test_a_summary_that_hangs_is_given_up_once_and_a_digest_stands_in() -> None:
    asked: list[int] = []

    async def hanging(messages: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        asked.append(tokens)
        await asyncio.sleep(60)
        yield "Goal:"

    result = squeezed(make.talk(20, lines=4), options(timeout_seconds=0.05), hanging)

    assert len(asked) == 1
    assert result.fallback == "it took longer than 0.05 seconds"
    assert result.compressed_token_count < result.original_token_count
