"""Recap of a resumed session: its last messages as the screen showed them, long texts shortened."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from ollm.cli.screen.composing import FOLD_LINES
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import MessageRecorded, TextDelta, ToolFinished, ToolStarted, TurnFinished, TurnStarted
from ollm.domain.text import fold_lines, format_count
from ollm.domain.tools import ErrorInfo, describe_call, read_result

MAX_MESSAGE_CHARACTERS = 1_500
ATTACHMENT = re.compile(r"\n\n\[([^\]\n]+)\]\n")
RECAP_MESSAGES = 40
FEW_MESSAGES = 20
PASTE_HEAD_LINES, PASTE_TAIL_LINES = 3, 2
MAX_SAID_CHARACTERS = 300


def show_recap(
    page: list[dict[str, Any]], transcript: Transcript, painter: Painter, out: Callable[[str], None]
) -> None:
    """Show an archive page as events of the transcript, from the first user message on."""
    begins = next((place for place, message in enumerate(page) if message["role"] == "user"), 0)
    if earlier := page[begins]["id"] - 1:
        out(painter.paint_aside(f"{format_count(earlier, 'earlier message')}: /history all", "dim") + "\n")
    for message in page[begins:]:
        if message["role"] == "user":
            transcript.show(TurnFinished(reason="answered"))
            out(render_user_message(message["parts"], painter))
            transcript.show(TurnStarted(message_id=message["id"], text=""))
        elif message["role"] == "assistant":
            said = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
            if said.strip():
                transcript.show(TextDelta(text=shorten_text(said)))
                transcript.show(MessageRecorded(message_id=message["id"], role="assistant"))
            for call in message.get("toolCalls") or ():
                out(render_questions(call, painter))
                show_call(call, transcript)
    transcript.show(TurnFinished(reason="answered"))


def show_call(call: dict[str, Any], transcript: Transcript) -> None:
    summary = describe_call(call["name"], call["args"], call.get("summary"))
    result, status = read_result(call), call["status"]
    if status != "ok" and not result.exit_code:
        said = result.error.message[:MAX_SAID_CHARACTERS] if result.error else ""
        result = msgspec.structs.replace(result, error=ErrorInfo(type=status, message=said or status))
    transcript.show(ToolStarted(call_id=call["id"], name=call["name"], summary=summary))
    transcript.show(ToolFinished(call_id=call["id"], name=call["name"], status=status, result=result))


def pick_last_turns(page: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pick the last few messages, from a user message on, including at least the last two turns in full."""
    begins = [place for place, message in enumerate(page) if message["role"] == "user"]
    few = next((place for place in begins if place >= len(page) - FEW_MESSAGES), len(page))
    return page[min(few, *begins[-2:], len(page)) if begins else 0 :]


def render_user_message(parts: list[dict[str, Any]], painter: Painter) -> str:
    typed, *beside = [part["text"] for part in parts if part["type"] == "text"] or [""]
    names = [found[1] for text in beside if (found := ATTACHMENT.match(text))]
    typed += "".join(text for text in beside if not ATTACHMENT.match(text))
    attached = "".join(painter.paint_aside(f"+ {name}", "dim") for name in names)
    return painter.paint_user_message(shorten_text(fold_paste(typed))) + attached + "\n"


def render_questions(call: dict[str, Any], painter: Painter) -> str:
    return "".join(
        painter.paint_aside(f"? {asked['question'][:MAX_SAID_CHARACTERS]}", "yellow")
        + painter.paint_reply(asked["answer"][:MAX_SAID_CHARACTERS])
        for asked in (call.get("result") or {}).get("questions") or ()
    )


def fold_paste(text: str) -> str:
    """Fold a long paste to its first and last lines, which include text typed after it."""
    lines = text.split("\n")
    folded = fold_lines(lines, PASTE_HEAD_LINES, PASTE_TAIL_LINES, " (/history)")
    return text if len(lines) < FOLD_LINES else "\n".join(folded)


def shorten_text(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARACTERS else f"{text[:MAX_MESSAGE_CHARACTERS]} … (see /history)"
