"""Long things made short, by an engine: head, tail, what was left out, and how to `recall` it (T9, S3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ollm.domain.context import number_ranges
from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression.groups import Group, numbers

TextCost = Callable[[str], int]
FOLDED_RESULT_TOKENS = 60
LINE = "[Folded messages "
_FAILED = r"Error \w+: |Exit code: -?[1-9]"
_MARK = r"\[\.\.\. .* recall \{.*\} reads .*\]"


def recall_call(message: int | None = None, call: str | None = None) -> str:
    """How the model asks for it, as it would write the arguments."""
    return f'recall {{"callId": "{call}"}}' if call else f'recall {{"messageId": {message}}}'


def cut(text: str, tokens: int, cost: TextCost, way: str) -> str:
    """The text, or its head and tail with a line between that says how much is missing and how to read it."""
    if cost(text) <= tokens:
        return text
    room = max(0, tokens - cost(_omission("", text, way)))
    keep = int(len(text) * room / max(1, cost(text)))
    while True:
        head, tail = _ends(text, keep)
        gap = text[len(head) : len(text) - len(tail)]
        omission = _omission(head, gap, way)
        shortened = "\n".join(filter(None, (head.rstrip("\n"), omission, tail.lstrip("\n"))))
        if keep == 0 or cost(shortened) <= tokens:
            return shortened if cost(shortened) < cost(text) else text
        keep = int(keep * 0.85) if keep > 8 else 0


def _ends(text: str, keep: int) -> tuple[str, str]:
    """Two thirds from the head, one from the tail, at line borders where one is near."""
    head, tail = text[: keep * 2 // 3], text[len(text) - keep // 3 :]
    line, start = head.rfind("\n"), tail.find("\n")
    if line > len(head) // 2:
        head = head[: line + 1]
    if 0 <= start < len(tail) // 2:
        tail = tail[start + 1 :]
    return head, tail


def _omission(head: str, gap: str, way: str) -> str:
    """Line numbers count from the beginning of the whole, so they hold for what `recall` reads."""
    lines, first = gap.count("\n") + 1, head.count("\n") + 1
    asked = f'{way[:-1]}, "startLine": {first}}}' if way.endswith("}") and first > 1 else way
    return f"[... {lines} lines, {len(gap)} characters left out; {asked} reads them]"


def folded_result(message: PromptMessage, cost: TextCost) -> PromptMessage:
    """An old tool result as a few lines of it; already short ones are handed back as they are."""
    if re.search(_MARK, message.content) and cost(message.content) <= 2 * FOLDED_RESULT_TOKENS:
        return message
    way = recall_call(message.sources[0] if message.sources else None, message.call_id)
    return msgspec.structs.replace(message, content=cut(message.content, FOLDED_RESULT_TOKENS, cost, way), images=())


def folded_calls(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """The long texts among the arguments of calls, such as the content of a written file, as head and tail."""
    if not message.calls:
        return message
    way = recall_call(message.sources[0] if message.sources else None)
    calls = tuple(
        msgspec.structs.replace(call, arguments=_shortened(call.arguments, tokens, cost, way)) for call in message.calls
    )
    return msgspec.structs.replace(message, calls=calls)


def _shortened(value: Any, tokens: int, cost: TextCost, way: str) -> Any:
    if isinstance(value, str):
        return cut(value, tokens, cost, way) if len(value) > tokens else value
    if isinstance(value, dict):
        return {name: _shortened(part, tokens, cost, way) for name, part in value.items()}
    if isinstance(value, list):
        return [_shortened(part, tokens, cost, way) for part in value]
    return value


def failed(message: PromptMessage) -> bool:
    return message.role == "tool" and re.match(_FAILED, message.content) is not None


def line_for(messages: Sequence[PromptMessage]) -> PromptMessage:
    """One engine-written line in place of old messages, with their numbers."""
    ids = numbers(messages)
    said = "; ".join(filter(None, map(_gist, messages)))
    return PromptMessage(role="system", content=f"{LINE}{number_ranges(ids)}: {said[:240]}]", sources=ids)


def is_line(message: PromptMessage) -> bool:
    return message.role == "system" and message.content.startswith(LINE)


def merged_line(lines: Sequence[PromptMessage]) -> PromptMessage:
    """Several lines as one that only keeps the numbers."""
    ids = numbers(lines)
    return PromptMessage(role="system", content=f"{LINE}{number_ranges(ids)}; recall brings them back]", sources=ids)


def digest(groups: Sequence[Group], tokens: int, cost: TextCost) -> str:
    """What happened, without a model: a line for each group, the newest kept when there is not room for all."""
    lines: list[str] = []
    left = tokens
    for group in reversed(groups):
        line = f"- #{number_ranges(numbers(group))}: " + "; ".join(filter(None, map(_gist, group)))[:200]
        left -= cost(line)
        if left < 0:
            lines.append(f"- and {len(groups) - len(lines)} earlier steps")
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _gist(message: PromptMessage) -> str:
    """A message in a few words."""
    if is_line(message):
        return message.content.removeprefix(LINE).rstrip("]").partition(": ")[2]
    first = " ".join(message.content.split())[:90]
    if message.role == "tool":
        return f"{message.tool_name or 'tool'} {'failed' if failed(message) else 'gave'}: {first[:60]}"
    called = ", ".join(f"{call.name}({_main_argument(call.arguments)})" for call in message.calls)
    return "; ".join(filter(None, (first and f"said: {first}", called and f"called {called}")))


def _main_argument(arguments: dict[str, object]) -> str:
    """The argument a person would name the call by."""
    for name in ("path", "command", "pattern", "url", "query"):
        if isinstance(value := arguments.get(name), str):
            return value[:60]
    return ""
