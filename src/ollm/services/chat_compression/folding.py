"""Long things made short, by an engine: head, tail, what was left out, and how to `recall` it (T9, S3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ollm.domain.context import format_number_ranges
from ollm.domain.messages import PromptMessage

TextCost = Callable[[str], int]
Group = tuple[PromptMessage, ...]
FOLDED_RESULT_TOKENS = 60
LINE_PREFIX = "[Folded messages "
USER_LINE_ID = "user-messages"  # the record of an older version that cites the oldest of them
ASIDE = "\n\n<now>\n"
_ASIDE = r"(?s)\n\n<now>\n.*\n</now>\Z"
_MARK = r"\[\.\.\. .* recall \{.*\} reads .*\]"


def format_recall_call(message: int | None = None, call: str | None = None) -> str:
    """Format the recall call as the model would write its arguments."""
    return f'recall {{"callId": "{call}"}}' if call else f'recall {{"messageId": {message}}}'


def cut_text(text: str, tokens: int, cost: TextCost, way: str) -> str:
    """The text, or its head and tail with a line between that says how much is missing and how to read it; without a
    `way` to read it a sign that something is missing."""
    if cost(text) <= tokens:
        return text
    left = max(0, tokens - cost(_format_omission("", text, way)))
    keep = int(len(text) * left / max(1, cost(text)))
    while True:
        head, tail = _split_ends(text, keep)
        gap = text[len(head) : len(text) - len(tail)]
        omission = _format_omission(head, gap, way)
        shortened = "\n".join(filter(None, (head.rstrip("\n"), omission, tail.lstrip("\n"))))
        if keep == 0 or cost(shortened) <= tokens:
            return shortened if cost(shortened) < cost(text) else text
        keep = int(keep * 0.85) if keep > 8 else 0


def _split_ends(text: str, keep: int) -> tuple[str, str]:
    """Two thirds from the head, one from the tail, at line borders where one is near."""
    head, tail = text[: keep * 2 // 3], text[len(text) - keep // 3 :]
    line, start = head.rfind("\n"), tail.find("\n")
    if line > len(head) // 2:
        head = head[: line + 1]
    if 0 <= start < len(tail) // 2:
        tail = tail[start + 1 :]
    return head, tail


def _format_omission(head: str, gap: str, way: str) -> str:
    """Line numbers and characters count from the beginning of the whole, so they hold for what `recall` reads."""
    if not way:
        return "[…]"
    lines, first = gap.count("\n") + 1, head.count("\n") + 1
    if lines == 1 and way.endswith("}"):
        return f'[... {len(gap)} characters left out; {way[:-1]}, "offset": {len(head)}}} reads them]'
    asked = f'{way[:-1]}, "startLine": {first}}}' if way.endswith("}") and first > 1 else way
    return f"[... {lines} lines, {len(gap)} characters omitted; {asked} reads them]"


def fold_result(message: PromptMessage, cost: TextCost) -> PromptMessage:
    """An old tool result as a few lines of it; already short ones are handed back as they are."""
    if re.search(_MARK, message.content) and cost(message.content) <= 2 * FOLDED_RESULT_TOKENS:
        return message
    way = format_recall_call(message.sources[0] if message.sources else None, message.call_id)
    return msgspec.structs.replace(
        message, content=cut_text(message.content, FOLDED_RESULT_TOKENS, cost, way), images=()
    )


def fold_calls(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """The long texts among the arguments of calls, such as the content of a written file, as head and tail."""
    if not message.calls:
        return message
    way = format_recall_call(message.sources[0] if message.sources else None)
    calls = tuple(
        msgspec.structs.replace(call, arguments=_shorten_value(call.arguments, tokens, cost, way))
        for call in message.calls
    )
    return message if calls == message.calls else msgspec.structs.replace(message, calls=calls, written="")


def _shorten_value(value: Any, tokens: int, cost: TextCost, way: str) -> Any:
    if isinstance(value, str):
        return cut_text(value, tokens, cost, way) if len(value) > tokens else value
    if isinstance(value, dict):
        return {name: _shorten_value(part, tokens, cost, way) for name, part in value.items()}
    if isinstance(value, list):
        return [_shorten_value(part, tokens, cost, way) for part in value]
    return value


def make_folded_line(messages: Sequence[PromptMessage]) -> PromptMessage:
    """One engine-written line in place of old messages, with their numbers."""
    ids = list_numbers(messages)
    said = "; ".join(filter(None, map(_summarize_message, messages)))
    return PromptMessage(role="system", content=f"{LINE_PREFIX}{format_number_ranges(ids)}: {said[:240]}]", sources=ids)


def is_folded_line(message: PromptMessage) -> bool:
    return message.role == "system" and message.content.startswith(LINE_PREFIX)


def merge_folded_lines(lines: Sequence[PromptMessage]) -> PromptMessage:
    """Several lines as one that only keeps the numbers."""
    ids = list_numbers(lines)
    return PromptMessage(
        role="system", content=f"{LINE_PREFIX}{format_number_ranges(ids)}; recall brings them back]", sources=ids
    )


def write_digest(groups: Sequence[Group], tokens: int, cost: TextCost) -> str:
    """Write a summary without a model: a line for each group, the newest first if there is not room for all."""
    lines: list[str] = []
    left = tokens
    for group in reversed(groups):
        line = (
            f"- #{format_number_ranges(list_numbers(group))}: "
            + "; ".join(filter(None, map(_summarize_message, group)))[:200]
        )
        left -= cost(line)
        if left < 0:
            lines.append(f"- and {len(groups) - len(lines)} earlier steps")
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _summarize_message(message: PromptMessage) -> str:
    if is_folded_line(message):
        return message.content.removeprefix(LINE_PREFIX).rstrip("]").partition(": ")[2]
    first = " ".join(message.content.split())[:90]
    if message.role == "tool":
        return f"{message.tool_name or 'tool'} {'failed' if message.failed else 'gave'}: {first[:60]}"
    called = ", ".join(f"{call.name}({_pick_main_argument(call.arguments)})" for call in message.calls)
    return "; ".join(filter(None, (first and f"said: {first}", called and f"called {called}")))


def _pick_main_argument(arguments: dict[str, object]) -> str:
    """The argument a person would name the call by."""
    for name in ("path", "command", "pattern", "url", "query"):
        if isinstance(value := arguments.get(name), str):
            return value[:60]
    return ""


def add_companions(message: PromptMessage, primed: str, aside: str) -> PromptMessage:
    """A user message with the files that go with it and what is true at this moment only; both are dropped when it is
    old."""
    if not primed and not aside:
        return message
    content = message.content + (f"\n\n{primed}" if primed else "") + (f"{ASIDE}{aside}\n</now>" if aside else "")
    return msgspec.structs.replace(message, content=content, own_chars=len(message.content))


def remove_aside(message: PromptMessage) -> PromptMessage:
    if message.role != "user":
        return message
    if message.own_chars is not None:
        return msgspec.structs.replace(message, content=message.split_content()[0], own_chars=None)
    if ASIDE not in message.content:  # a context kept by an older version
        return message
    return msgspec.structs.replace(message, content=re.sub(_ASIDE, "", message.content))


def shorten_message(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """Head, tail and the way to the rest."""
    way = format_recall_call(message.sources[0] if message.sources else None)
    return msgspec.structs.replace(message, content=cut_text(message.content, tokens, cost, way))


def list_numbers(messages: Sequence[PromptMessage]) -> tuple[int, ...]:
    """The recorded messages these stand for."""
    return tuple(sorted({number for message in messages for number in message.sources}))
