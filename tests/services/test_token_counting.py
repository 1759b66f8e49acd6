"""Token counts: near enough before anything is known, right once the server has said so."""

from __future__ import annotations

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.services.token_counting import (
    MAX_FACTOR,
    MIN_FACTOR,
    TokenCounter,
    estimate_doubt_units,
    estimate_units,
)
from tests.covers import covers

PROSE = "The quick brown fox jumps over the lazy dog, and nobody in the village was surprised by it."


RECORDS = json.dumps([{"id": 48213 + n, "path": f"/var/log/app{n}.log", "ok": n % 2 == 0} for n in range(60)], indent=2)
LOG = "\n".join(
    f"2026-11-15T02:{n:02d}:13.{n * 7:03d}Z INFO [worker-{n}] request took {n * 13}ms status=200" for n in range(60)
)
HASHES = "\n".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(30))
# What SmolLM2 and Qwen2.5 count, asked of llama.cpp.
REAL_COUNTS = [(RECORDS, (2093, 1972)), (LOG, (2680, 2620)), (HASHES, (1748, 1725))]


@pytest.mark.parametrize(("text", "counted"), REAL_COUNTS, ids=["json", "log", "hashes"])
def test_counts_of_real_tokenizers_are_met_within_a_quarter(text: str, counted: tuple[int, int]) -> None:
    for exact in counted:
        assert 0.75 <= estimate_units(text) / exact <= 1.25
        assert len(text) / 4 / exact < 0.6


@given(st.floats(0.5, 3.0), st.lists(st.integers(200, 5000), min_size=10, max_size=30))
def test_the_factor_is_learnt_from_exact_counts(truth: float, sizes: list[int]) -> None:
    counter = TokenCounter()

    for size in sizes:
        counter.learn(size, round(size * truth))

    assert math.isclose(counter.factor, truth, rel_tol=0.02)


@covers("D612")
@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 0))
def test_absurd_counts_and_factors_leave_a_usable_one(factor: float, exact: int) -> None:
    counter = TokenCounter(factor)
    before = counter.factor

    counter.learn(100, exact)

    assert MIN_FACTOR <= counter.factor == before <= MAX_FACTOR


def test_an_exact_count_of_a_text_is_remembered() -> None:
    counter = TokenCounter()
    counter.remember(PROSE, 21)

    assert counter.count_text(PROSE) == 21


def test_a_message_counts_its_calls_and_the_marks_around_it() -> None:
    counter = TokenCounter()
    plain = PromptMessage(role="assistant", content="Reading it.")
    calling = PromptMessage(
        role="assistant",
        content="Reading it.",
        calls=(ToolCall(id="c1", name="read_file", arguments={"path": "a\ud800.py"}),),
    )

    assert counter.count_message(plain) > counter.count_text("Reading it.")
    assert counter.count_message(calling) > counter.count_message(plain) + 5


def test_tool_schemas_are_counted() -> None:
    schema = ToolSchema(name="ls", description="List a directory.", parameters={"type": "object", "properties": {}})

    one, two = TokenCounter().count_schemas([schema]), TokenCounter().count_schemas([schema, schema])
    assert TokenCounter().count_schemas([]) == 0
    assert 80 < one < two < 2 * one  # what a template says of calling stands once
    assert TokenCounter().count_schema_texts([schema, schema]) == 2 * TokenCounter().count_schema_texts([schema]) > 20


def test_no_vocabulary_of_bytes_counts_more_than_an_estimate_and_its_doubt() -> None:
    for text in ("龘靐齉爩鱻", "𠀀𠂀𠃀", "ꙮ꙰ꙮ", "🜁🜂🜃"):
        assert estimate_units(text) + estimate_doubt_units(text) >= len(text.encode()) * 0.99
    assert estimate_doubt_units("plain words") == 0
    assert 0 < estimate_doubt_units("请检查这个模块") < len("请检查这个模块") * 1.2
