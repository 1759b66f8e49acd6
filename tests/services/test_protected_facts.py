"""Facts are what people, the model and tools said, never what we wrote around it."""

from __future__ import annotations

import pytest

from ollm.services.chat_compression.folding import find_facts, find_missing, strip_markers


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("use port 8443", {"8443"}),
        ("see src/a/b.py:12 please", {"src/a/b.py"}),
        ("call parseLine and max_size", {"parseLine", "max_size"}),
        ("look at https://x.test/a?b=1.", {"https://x.test/a?b=1"}),
        ("keep `make all` working", {"make all"}),
        ("TypeError: no such thing", {"TypeError: no such thing"}),
        ("An ordinary sentence of no importance.", set()),
    ],
)
def test_names_numbers_places_and_errors_are_facts(text: str, facts: set[str]) -> None:
    assert facts <= set(find_facts([text]))
    assert facts or not find_facts([text])


@pytest.mark.parametrize(
    "marker",
    [
        '[... 31 lines, 878 characters left out; recall {"messageId": 1107} reads them]',
        '[... 1 lines, 5123 characters left out; recall {"callId": "c430", "startLine": 120} reads them]',
        "[Folded messages 812-900; recall brings them back]",
        "[Record of messages 100-340; recall brings back any by number]",
    ],
)
def test_our_own_markers_hold_none(marker: str) -> None:
    assert find_facts([f"before {marker} after"]) == ()
    assert find_facts([f"port 7001 {marker} src/x.py"]) == ("7001", "src/x.py")
    assert "left out" not in strip_markers(marker)


def test_what_is_missing_is_told_in_order() -> None:
    assert find_missing("port 8443 only", ["8443", "src/a.py", "9000"]) == ["src/a.py", "9000"]
