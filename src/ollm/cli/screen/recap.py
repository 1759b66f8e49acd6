"""Recap of a resumed session: its last messages, shortened."""

from __future__ import annotations

import re
from typing import Any

from ollm.cli.screen.composing import FOLD_LINES
from ollm.cli.screen.markdown import MarkdownBlocks
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.transcript import OUTCOME_CELLS, choose_output, choose_preview
from ollm.domain.text import format_count
from ollm.domain.tools import describe_call, read_result

MAX_MESSAGE_CHARACTERS = 1_500
ATTACHMENT = re.compile(r"\n\n\[([^\]\n]+)\]\n")
MARKS = {"ok": ("✓", "green"), "running": ("…", "dim")}
RECAP_MESSAGES = 40  # that are looked at for the last turns
FEW_MESSAGES = 20
PASTE_HEAD_LINES, PASTE_TAIL_LINES = 3, 2
MAX_SAID_CHARACTERS = 300  # of why a call was not made


def render_recap(page: list[dict[str, Any]], painter: Painter) -> str:
    """Render an archive page as the screen would have shown it, from the first user message on."""
    begins = next((place for place, message in enumerate(page) if message["role"] == "user"), 0)
    page = page[begins:]
    earlier = page[0]["id"] - 1
    said = f"{format_count(earlier, 'earlier message')}: /history all"
    text = painter.paint_aside(said, "dim") + "\n" if earlier else ""
    after_call = False
    for message in page:
        shown = render_message(message, painter)
        text += f"\n{shown}" if after_call and starts_with_words(message) else shown
        after_call = bool(message.get("toolCalls")) or (after_call and not shown)
    return text + ("\n" if after_call else "")


def pick_last_turns(page: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pick the last few messages, from a user message on, including at least the last two turns in full."""
    begins = [place for place, message in enumerate(page) if message["role"] == "user"]
    few = next((place for place in begins if place >= len(page) - FEW_MESSAGES), len(page))
    return page[min(few, *begins[-2:], len(page)) if begins else 0 :]


def collect_turn_outputs(page: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    """Collect the outputs of calls by name for each turn, without turns that have none."""
    turns: list[list[tuple[str, str]]] = [[]]
    for message in page:
        if message["role"] == "user":
            turns.append([])
        elif message["role"] == "assistant":
            turns[-1] += [read_output(call) for call in message.get("toolCalls") or ()]
    return [turn for turn in turns if turn]


def read_output(call: dict[str, Any]) -> tuple[str, str]:
    """Return the name and the full output of a call."""
    return describe_call(call["name"], call["args"], call.get("summary")), choose_output(read_result(call))


def starts_with_words(message: dict[str, Any]) -> bool:
    return message["role"] in ("user", "assistant") and any(
        part["type"] == "text" and part["text"].strip() for part in message["parts"]
    )


def render_message(message: dict[str, Any], painter: Painter) -> str:
    if message["role"] == "user":
        return render_user_message(message["parts"], painter)
    said = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    if message["role"] != "assistant":
        return ""
    text = render_answer(shorten_text(said), painter) if said.strip() else ""
    return text + "".join(render_call(call, painter) for call in message.get("toolCalls") or ())


def render_user_message(parts: list[dict[str, Any]], painter: Painter) -> str:
    """Render the typed text and the names of its attachments."""
    typed, *beside = [part["text"] for part in parts if part["type"] == "text"] or [""]
    names = [found[1] for text in beside if (found := ATTACHMENT.match(text))]
    typed += "".join(text for text in beside if not ATTACHMENT.match(text))
    attached = "".join(painter.paint_aside(f"+ {name}", "dim") for name in names)
    return painter.paint_user_message(shorten_text(fold_lines(typed))) + attached + "\n"


def render_answer(said: str, painter: Painter) -> str:
    """Render an answer block by block, as it was streamed."""
    blocks = MarkdownBlocks()
    found = [*blocks.feed(said), blocks.finish()]
    painted = [painter.paint_answer(block, first=number == 0) for number, block in enumerate(filter(None, found))]
    return "".join(f"{block}\n" for block in painted)


def render_call(call: dict[str, Any], painter: Painter) -> str:
    """Render a call with its outcome, its changes, and the first and last lines of a command's output."""
    mark, style = MARKS.get(call["status"], ("✗", "yellow"))
    result = read_result(call)
    code = result.exit_code
    if code:
        mark, style = "✗", "red"
    said = (result.error.message[:MAX_SAID_CHARACTERS] if result.error else "") or call["status"]
    outcome = f" · exit {code}" if code else "" if call["status"] == "ok" else f" · {said}"
    summary = painter.fit_line(describe_call(call["name"], call["args"], call.get("summary")), OUTCOME_CELLS)
    line = render_questions(call, painter) + painter.paint_call(mark, style, summary, outcome)
    if result.diff:
        return line + painter.paint_diff(result.diff)
    return line + (painter.paint_preview(preview) if (preview := choose_preview(result)) else "")


def render_questions(call: dict[str, Any], painter: Painter) -> str:
    """Render questions about a call, with the person's answers."""
    return "".join(
        painter.paint_aside(f"? {asked['question'][:MAX_SAID_CHARACTERS]}", "yellow")
        + painter.paint_reply(asked["answer"][:MAX_SAID_CHARACTERS])
        for asked in (call.get("result") or {}).get("questions") or ()
    )


def fold_lines(text: str) -> str:
    """Fold a long paste to its first and last lines, which include text typed after it."""
    lines = text.split("\n")
    left_out = len(lines) - PASTE_HEAD_LINES - PASTE_TAIL_LINES
    if len(lines) < FOLD_LINES:
        return text
    tail = lines[len(lines) - PASTE_TAIL_LINES :]
    return "\n".join([*lines[:PASTE_HEAD_LINES], f"… {left_out:,} more lines (/history)", *tail])


def shorten_text(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARACTERS else f"{text[:MAX_MESSAGE_CHARACTERS]} … (see /history)"
