"""What a simulated conversation came to, from the requests the server saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean

from bench.context_simulation.cost import Cost, count_common, measure_cost
from bench.context_simulation.scenario import Fact, ScriptedTurn
from bench.context_simulation.server import Heard
from bench.context_simulation.tokenizer import Tokenizer

EARLY_TURNS = 40


@dataclass
class Figures:
    """The table's column of one run."""

    turns: int = 0
    requests: int = 0
    summaries: int = 0
    refused: int = 0
    over_window: int = 0
    sum_over_window: int = 0
    largest: int = 0
    rewrites: int = 0
    prefix_kept: float = 1.0
    tool_turns: int = 0
    request_cut: int = 0
    facts_visible: float = 0.0
    least_facts: int = 0
    early_whole: int = 0
    early_facts: int = 0
    cost: Cost = field(default_factory=Cost)
    fill: float = 0.0
    unanswered: int = 0
    seconds: float = 0.0
    note_share: float = 0.0
    broken: list[str] = field(default_factory=list)

    @property
    def compressions(self) -> float:
        return self.rewrites / max(1, self.turns)

    def lines(self, window: int) -> list[tuple[str, str]]:
        return [
            ("requests over the window", f"{self.over_window} of {self.requests}"),
            ("prompt + max_tokens over the window", f"{self.sum_over_window}"),
            ("largest prompt, share of the window", f"{self.largest / window:.2f}"),
            ("refused by the server", f"{self.refused}"),
            ("compressions a turn", f"{self.compressions:.3f}"),
            ("summary requests", f"{self.summaries}"),
            ("prefix kept", f"{self.prefix_kept:.1%}"),
            (f"tool turns with the request cut, of {self.tool_turns}", f"{self.request_cut}"),
            ("facts visible, last two thirds (least)", f"{self.facts_visible:.1f} ({self.least_facts})"),
            (f"first {EARLY_TURNS} at turn {EARLY_TURNS}: whole / facts", f"{self.early_whole} / {self.early_facts}"),
            *self.cost.lines(),
            ("mean fill of the limit", f"{self.fill:.2f}"),
            ("turns unanswered", f"{self.unanswered}"),
            ("seconds", f"{self.seconds:.0f}"),
        ]


def measure(
    heard: Sequence[Heard], played: Sequence[ScriptedTurn], facts: Sequence[Fact], window: int, tokenizer: Tokenizer
) -> Figures:
    figures = Figures(turns=len(played), requests=len(heard))
    talked = [one for one in heard if not one.summary and one.status == 200]
    figures.summaries = sum(one.summary for one in heard)
    figures.refused = sum(one.status != 200 for one in heard)
    figures.over_window = sum(one.prompt_tokens > window for one in heard)
    figures.sum_over_window = sum(one.prompt_tokens + one.max_tokens > window for one in heard)
    figures.largest = max((one.prompt_tokens for one in heard), default=0)
    figures.fill = mean(one.prompt_tokens for one in talked) / (window * 0.85) if talked else 0.0
    _measure_prefix(figures, talked, tokenizer)
    _measure_requests(figures, talked, played)
    visible = _count_visible(talked, facts, len(played))
    figures.facts_visible, figures.least_facts = (mean(visible), min(visible)) if visible else (0.0, 0)
    _measure_early(figures, talked, played)
    figures.cost = measure_cost(heard, {turn.number: turn.text for turn in played}, tokenizer)
    return figures


def _measure_prefix(figures: Figures, talked: Sequence[Heard], tokenizer: Tokenizer) -> None:
    kept = sent = 0
    for before, after in pairwise(talked):
        same = count_common(before.pieces, after.pieces, tokenizer)
        whole = before.pieces == after.pieces[: len(before.pieces)]
        figures.rewrites += not whole
        if not whole:
            place = next((n for n, (o, w) in enumerate(zip(before.pieces, after.pieces, strict=False)) if o != w), -1)
            figures.broken.append(
                f"turn {after.turn}: {before.prompt_tokens} -> {after.prompt_tokens}, "
                f"piece {place} of {len(before.pieces)}, {same} tokens kept"
            )
        kept += same
        sent += sum(map(tokenizer.count, before.pieces))
    figures.prefix_kept = kept / sent if sent else 1.0


def _measure_requests(figures: Figures, talked: Sequence[Heard], played: Sequence[ScriptedTurn]) -> None:
    by_turn: dict[int, list[Heard]] = {}
    for one in talked:
        by_turn.setdefault(one.turn, []).append(one)
    for turn in played:
        if turn.uses_tools:
            figures.tool_turns += 1
            asked = by_turn.get(turn.number, [])
            figures.request_cut += any(turn.text not in one.text for one in asked) or not asked


def _count_visible(talked: Sequence[Heard], facts: Sequence[Fact], turns: int) -> list[int]:
    """Facts told so far whose value is in the last request of a turn, for each of the last two thirds of the turns."""
    last = {one.turn: one for one in talked}
    told = {fact.turn: fact for fact in facts}
    return [
        sum(fact.value in one.text for number, fact in told.items() if number <= turn)
        for turn, one in last.items()
        if turn > turns // 3
    ]


def _measure_early(figures: Figures, talked: Sequence[Heard], played: Sequence[ScriptedTurn]) -> None:
    """Look for the user's first messages and their facts in the last request of a later turn."""
    text = next((one.text for one in reversed(talked) if one.turn == EARLY_TURNS), "")
    figures.early_whole = sum(turn.text.strip() in text for turn in played[:EARLY_TURNS] if text)
    figures.early_facts = sum(turn.fact.value in text for turn in played[:EARLY_TURNS] if text and turn.fact)
