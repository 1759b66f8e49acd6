"""When a message fits another mode."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.context import ModeName
from ollm.services.mode_proposal import MODE_SIGNS, propose_mode


@pytest.mark.parametrize(
    ("text", "current", "expected"),
    [
        ("Why does the parser fail? Here is the traceback of the crash", "code", "debug"),
        ("Make a plan for the migration, and an approach before you change anything", "code", "plan"),
        ("Implement the cache and add a test", "assistant", "code"),
        ("Explain what is the difference between the two", "code", "assistant"),
        ("Thanks", "code", None),
        ("Implement the cache and add a test", "code", None),
        ("", "code", None),
    ],
)
def test_a_mode_is_proposed_when_a_message_plainly_fits_it(text: str, current: ModeName, expected: str | None) -> None:
    found = propose_mode(text, current)

    assert (found.mode if found else None) == expected
    assert found is None or 0.75 <= found.confidence <= 0.95


@pytest.mark.parametrize("mode", MODE_SIGNS)
@given(data=st.data())
def test_no_sign_of_a_mode_is_without_the_parts_that_are_looked_for_first(mode: ModeName, data: st.DataObject) -> None:
    parts, pattern = MODE_SIGNS[mode]
    ascii_only = st.characters(max_codepoint=127)
    said = data.draw(st.from_regex(re.compile(pattern, re.IGNORECASE | re.ASCII), alphabet=ascii_only))

    assert any(part in said.casefold() for part in parts)


def test_a_very_long_message_is_judged_quickly() -> None:
    propose_mode("why does " + "x " * 500_000 + " fail", "code")


@pytest.mark.parametrize(
    ("text", "current", "confidence"),
    [
        ("debug", "code", 0.8),
        ("debug the crash", "code", 0.95),
        ("debug and explain", "code", None),
        ("debug the crash and explain", "code", 0.9),
        ("explain, and debug", "assistant", None),
        ("debug debug DEBUG", "code", 0.8),
        ("x" * 4000 + " debug", "code", None),
        ("x" * 3990 + " debug", "code", 0.8),
    ],
)
def test_how_plain_it_is_goes_by_the_different_signs(text: str, current: ModeName, confidence: float | None) -> None:
    found = propose_mode(text, current)

    assert (found.confidence if found else None) == confidence
