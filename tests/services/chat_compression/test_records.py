"""Records of old messages: appended, merged when they take too much, and the user's words verbatim while they fit."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.context import Checkpoint, RequestLine
from ollm.runtime.prompt.compaction import make_caps
from ollm.services import budget
from ollm.services.chat_compression.records import (
    RecordCaps,
    WordRarity,
    age_checkpoints,
    count_lines,
    count_tokens,
    fold_lines,
    shorten_request,
    shorten_summary,
)
from ollm.services.token_counting import TokenCounter
from tests.covers import covers

counter = TokenCounter()
cost = counter.count_text
TEXT = "\n".join(
    [
        "Goal:",
        *[f"- reach aim {n} before the others do" for n in range(9)],
        "Decisions:",
        *[f"- take road {n} and not the other one" for n in range(9)],
        "Facts: 8443; src/a.py",
    ]
)
LAST_LINE_TOKENS = 40  # that a line may take which leaves at last
FILLER = "The service reads its settings when it starts and keeps them until somebody sends it a signal. " * 4


def made(number: int, text: str = TEXT, *asked: RequestLine) -> Checkpoint:
    ids = (number * 10, number * 10 + 1)
    bare = Checkpoint(id=f"k{number}", text=text, message_ids=ids, timestamp="", tokens=0, requests=asked)
    return msgspec.structs.replace(bare, tokens=counter.count_message(bare.message))


def make_requests(count: int, text: str = "Please mend part_{n} and keep port {n} open.") -> tuple[RequestLine, ...]:
    return tuple(RequestLine(number=n, text=text.format(n=n)) for n in range(1, count + 1))


@covers("H730")
def test_a_record_is_left_alone_while_it_fits_and_several_become_one_whose_words_only_grow() -> None:
    asked = make_requests(6)
    first, second = made(1, TEXT, *asked[:4]), made(2, TEXT, *asked[4:])
    caps = RecordCaps(words=500, shortened=500, summaries=300)

    assert age_checkpoints((first,), caps, counter) == (first,)

    (merged,) = age_checkpoints((first, second), caps, counter)
    assert cost(merged.text) <= caps.summaries
    assert merged.text.count("Goal:") == 1
    before = first.message.content.partition("Summary of messages")[0]
    assert merged.message.content.startswith(before)
    assert "Summary of messages 10-11, 20-21:" in merged.message.content
    assert "Facts: 8443; src/a.py" in merged.text


def test_words_that_do_not_fit_are_shortened_oldest_first_and_marked() -> None:
    asked = make_requests(30, "Request {n} is about part_{n}. " + FILLER)
    record = made(1, "Goal:\n- go on", *asked)

    (merged,) = age_checkpoints([record], RecordCaps(words=2000, shortened=960, summaries=90), counter)

    kept = [line.number for line in merged.requests]
    assert kept == list(range(31 - len(kept), 31))
    assert len(kept) > 20
    assert all(f"part_{line.number}" in line.text for line in merged.requests)
    assert f"#{kept[0]}~ " in merged.message.content
    sizes = [cost(line.text) for line in merged.requests]
    assert sizes[0] <= sizes[-1]


@given(
    st.lists(st.text(st.sampled_from("ab cd:\n-"), min_size=1, max_size=900), min_size=1, max_size=9),
    st.integers(300, 900),
)
def test_together_they_never_take_more_than_their_caps_and_keep_every_number(texts: list[str], cap: int) -> None:
    standing = [made(number, text) for number, text in enumerate(texts, 1)]

    aged = age_checkpoints(standing, RecordCaps(0, 0, cap), counter)

    assert count_tokens(aged) <= max(cap + 40, standing[0].tokens)
    assert {n for old in aged for n in old.message_ids} == {n for old in standing for n in old.message_ids}
    assert all(old.tokens == counter.count_message(old.message) for old in aged)


def test_the_record_of_an_older_version_does_not_age() -> None:
    line = Checkpoint(id="user-messages", text="User messages 1-9.", message_ids=(1, 9), timestamp="", tokens=30)

    aged = age_checkpoints((line, *map(made, range(1, 9))), RecordCaps(0, 0, 600), counter)

    assert aged[0] is line
    assert len(aged) == 2


@given(st.integers(2048, 65_536), st.integers(0, 1500), st.lists(st.integers(1, 400), max_size=60), st.integers(0, 900))
def test_words_are_verbatim_while_the_request_is_under_60_percent(
    window: int, fixed: int, sizes: list[int], rest: int
) -> None:
    state = budget.compute_budget(window, fixed)
    asked = [RequestLine(number=n, text="word " * size) for n, size in enumerate(sizes, 1)]
    record = made(1, "Goal:\n- go on", *asked)
    words = count_lines(asked, cost)
    whole = fixed + record.tokens + rest

    (aged,) = age_checkpoints([record], make_caps(state, [record], rest, 0, counter), counter)

    if words <= 0.3 * (state.limit - fixed) - 1 or whole < 0.6 * window - 1:
        assert aged.requests == record.requests
    if aged.requests != record.requests:
        least = budget.compute_words_share(state)
        assert least - LAST_LINE_TOKENS <= count_lines(aged.requests, cost) <= max(least, 0.6 * window - fixed - rest)
        assert [line.whole for line in aged.requests] == sorted(line.whole for line in aged.requests)


@given(st.lists(st.text(min_size=1, max_size=300), max_size=12), st.integers(0, 600))
def test_folded_lines_fit_and_only_old_ones_go(texts: list[str], tokens: int) -> None:
    lines = [RequestLine(number=n, text=text) for n, text in enumerate(texts)]

    folded = fold_lines(lines, tokens, cost)

    assert count_lines(folded, cost) <= tokens
    kept = [line.number for line in folded]
    newest = max(0, len(kept) - 1) // 2
    assert kept == sorted(kept)
    assert kept[len(kept) - newest :] == list(range(len(texts) - newest, len(texts)))


def test_of_old_words_those_stay_that_were_said_once_in_any_language() -> None:
    said = [
        "Mach bitte weiter wie bisher.",
        "Mach bitte so weiter.",
        "Die Tür der Werft wird safrangelb.",
        "So weiter.",
    ]
    lines = [RequestLine(number=n, text=text) for n, text in enumerate([*said, *["Mach bitte weiter."] * 8])]

    folded = fold_lines(lines, count_lines(lines, cost) // 2, cost)

    assert said[2] in [line.text for line in folded]
    assert len(folded) < len(lines)


def test_the_sentence_that_names_things_stays_wherever_it_is() -> None:
    fact = "The settings of resamo-svc live in /etc/resamo/a91f.toml."
    for text in (f"{fact} {FILLER}", f"{FILLER} {fact}", f"{FILLER} {fact} {FILLER}"):
        line = shorten_request(text, 40, cost, WordRarity([text, FILLER]))
        assert "/etc/resamo/a91f.toml" in line
        assert cost(line) <= 42
    trace = "\n".join(f"    at module_{n}.call({n})" for n in range(40))
    broken = f"Why does the build of billing fail since commit 9f31c2?\n{trace}"
    assert "9f31c2" in shorten_request(broken, 50, cost, WordRarity([broken]))
    chinese = "请先检查配置。" * 30 + "端口是 8443，不要改。" + "然后继续。" * 30
    assert "8443" in shorten_request(chinese, 40, cost, WordRarity([chinese]))


def test_a_shortened_summary_has_no_bare_heading_and_keeps_facts_and_the_top_of_each_section() -> None:
    for tokens in range(4, 160, 3):
        lines = shorten_summary(TEXT, tokens, counter).splitlines()
        assert lines
        for line, below in zip(lines, [*lines[1:], "Facts:"], strict=True):
            assert not line.endswith(":") or below.startswith("-")
        assert cost("\n".join(lines)) <= max(tokens, 8) + 3
        if tokens > 40:
            assert lines[-1] == "Facts: 8443; src/a.py"
    assert shorten_summary(TEXT, 70, counter).splitlines()[:2] == ["Goal:", "- reach aim 0 before the others do"]
