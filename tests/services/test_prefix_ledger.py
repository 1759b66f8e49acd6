"""The ledger: how much of a prompt stood, and what broke it."""

from __future__ import annotations

from ollm.domain.messages import PromptMessage
from ollm.runtime.prompt.prefix import PrefixLedger, PrefixPart


def parts(*texts: str) -> list[PrefixPart]:
    return [
        PrefixPart(name=f"message {n}", message=PromptMessage(role="user", content=t), tokens=10)
        for n, t in enumerate(texts)
    ]


def test_what_only_grows_is_reused_whole() -> None:
    ledger = PrefixLedger()
    ledger.record(parts("a"))
    entry = ledger.record(parts("a", "b", "c"))

    assert (entry.reused_share, entry.reused_tokens, entry.tokens, entry.broken_by) == (1.0, 10, 30, None)


def test_the_part_that_changed_is_named() -> None:
    ledger = PrefixLedger()
    ledger.record(parts("a", "b", "c", "d"))
    entry = ledger.record(parts("a", "B", "c", "d"))

    assert (entry.reused_share, entry.broken_by) == (0.25, "message 1")


def test_a_step_that_meant_to_change_the_front_is_named_instead() -> None:
    ledger = PrefixLedger()
    ledger.record(parts("a", "b"))

    assert ledger.record(parts("x"), "compression").broken_by == "compression"
    assert ledger.record(parts("x", "y"), "mode").broken_by is None


def test_only_the_newest_entries_are_kept() -> None:
    ledger = PrefixLedger()
    for _ in range(500):
        last = ledger.record(parts("a"))

    assert len(ledger.entries) == 200
    assert ledger.last is last
