"""A summary the engine writes, not the model (W): how far the work is, from what was done in each turn.

Deterministic and capped: the plan and what is unfinished first, then the last turn, then earlier ones, newest first;
what no longer fits is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.session import Episode, PlanState

MAX_REQUEST_CHARS = 300
MAX_LINE_CHARS = 160
MAX_SHORT_CHARS = 70


def render_rolling_summary(episodes: Sequence[Episode], plan: PlanState, limit: int) -> str:
    """At most `limit` characters."""
    if not episodes and not plan.steps:
        return ""
    head = [*render_plan(plan), *render_unfinished(episodes), *render_last_turn(episodes[-1:])]
    text = clip("\n".join(head), limit)
    return append_earlier_turns(text, episodes[:-1], limit)


def render_plan(plan: PlanState) -> list[str]:
    if not plan.steps:
        return []
    state = "paused" if plan.paused else "waiting for you" if plan.awaiting_continuation else "in progress"
    lines = [f"Plan: {plan.done_count} of {len(plan.steps)} steps done, {state}."]
    if plan.current_step and not plan.current_step.done:
        lines.append(f"Now: {clip(plan.current_step.text, MAX_LINE_CHARS)}")
    rest = [step.text for i, step in enumerate(plan.steps) if not step.done and i != plan.current_step_index]
    if rest:
        lines.append(
            "Then: " + "; ".join(clip(text, MAX_SHORT_CHARS) for text in rest[:5]) + format_more(len(rest) - 5)
        )
    return lines


def render_unfinished(episodes: Sequence[Episode]) -> list[str]:
    """Render the open failures: commands whose last outcome is bad, and a turn that stopped early."""
    last: dict[str, str] = {}
    for episode in episodes:
        for command in episode.commands:
            last.pop(command.command, None)
            if not command.ok:
                last[command.command] = command.outcome
    open_points = [f"`{clip(name, MAX_SHORT_CHARS)}` ended with {outcome}" for name, outcome in list(last.items())[-4:]]
    if episodes and episodes[-1].reason != "answered":
        open_points.append(f"the last turn ended early ({episodes[-1].reason})")
    return [f"Unfinished: {'; '.join(open_points)}."] if open_points else []


def render_last_turn(last: Sequence[Episode]) -> list[str]:
    lines: list[str] = []
    for episode in last:
        lines.append(f"Last request (#{episode.number}): {clip(join_lines(episode.request), MAX_REQUEST_CHARS)}")
        if episode.answer:
            lines.append(f"Answer: {clip(join_lines(episode.answer), MAX_REQUEST_CHARS)}")
        lines += render_details(episode)
    return lines


def render_details(episode: Episode) -> list[str]:
    lines = []
    if episode.files:
        lines.append("Files changed: " + ", ".join(episode.files[:8]) + format_more(len(episode.files) - 8))
    if episode.commands:
        shown = [f"`{clip(c.command, MAX_SHORT_CHARS)}` → {c.outcome}" for c in episode.commands[-4:]]
        lines.append("Commands: " + "; ".join(shown))
    if episode.decisions:
        lines.append("Decided: " + "; ".join(clip(text, MAX_LINE_CHARS) for text in episode.decisions[-4:]))
    if episode.errors:
        lines.append("Errors: " + "; ".join(clip(join_lines(text), MAX_LINE_CHARS) for text in episode.errors[-3:]))
    return lines


def append_earlier_turns(text: str, earlier: Sequence[Episode], limit: int) -> str:
    """Add a line per earlier turn, newest first in priority but oldest first on the page; count what is left out."""
    kept: list[str] = []
    left = limit - len(text) - len("\nEarlier:\n- (and 999999 requests before that)")
    for episode in reversed(earlier):
        line = render_earlier_turn(episode)
        if left < len(line) + 1:
            break
        left -= len(line) + 1
        kept.append(line)
    left = len(earlier) - len(kept)
    if not kept and not left:
        return text
    before = [f"- (and {left} requests before that)"] if left else []
    return clip("\n".join([text, "Earlier:", *before, *reversed(kept)]), limit)


def render_earlier_turn(episode: Episode) -> str:
    parts = [f"- #{episode.number} {clip(join_lines(episode.request), MAX_SHORT_CHARS)}"]
    if episode.files:
        parts.append(f"changed {', '.join(episode.files[:3])}{format_more(len(episode.files) - 3)}")
    if episode.decisions:
        parts.append(f"decided: {clip(join_lines(episode.decisions[-1]), MAX_SHORT_CHARS)}")
    if bad := [command for command in episode.commands if not command.ok]:
        parts.append(f"`{clip(bad[-1].command, 40)}` → {bad[-1].outcome}")
    return "; ".join(parts)


def join_lines(text: str) -> str:
    return " ".join(text.split())


def clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…" if limit > 0 else ""


def format_more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
