"""Shortening without a model: head, tail, the omitted amount, and how to `recall` it (T9, S3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ollm.domain.context import format_number_ranges
from ollm.domain.lazy import compile_late
from ollm.domain.messages import Group, PromptMessage

TextCost = Callable[[str], int]
FOLDED_RESULT_TOKENS = 60
TAIL_SHARE = 1 / 3  # The tail's share of a shortened text.
BEST_FIRST_TOOLS = ("recall", "web_search")
LINE_PREFIX = "[Folded messages "
USER_LINE_ID = "user-messages"  # An older version wrote a record with this id.
ASIDE = "\n\n<now>\n"
_MARK = r"\[\.\.\. .* recall \{.*\} reads .*\]"
MAX_WORD_CHARS = 300
MAX_ERROR_CHARS = 200
_URL = compile_late(r"https?://[^\s<>\"')\]}]+")
_PATH = compile_late(r"(?:[\w.~@+-]+)?(?:/[\w.@+-]+)+|\b[\w-]{2,}\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_NUMBER = compile_late(r"\d+(?:[.,_:-]\d+)*")
_NAME = compile_late(r"\b(?:[a-z][a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w*[A-Za-z0-9]_[A-Za-z0-9]\w*)\b")
_QUOTED = compile_late(r"`([^`\n]{1,120})`")
_ERROR = compile_late(r"\b(?:\w*(?:error|exception)|fatal|panic|failed|failure|traceback)\b", re.IGNORECASE)
# What the engine writes into a context: where something was left out, and what stands for old messages.
_MARKERS = compile_late(
    r"\[\.\.\. .*?left out.*?\]"
    r"|\[(?:Folded messages|Record of messages|Results of this step|Goals and decisions)[^\]\n]*\]?"
    r"|Summary of messages [\d, -]+:"
    r"|recall \{[^}\n]*\}"
    r"|\[[^\]\n]*characters left out[^\]\n]*\]"
    r"|\((?:cut|shown)[^)\n]*recall[^)\n]*\)"
)


def format_recall_call(message: int | None = None, call: str | None = None) -> str:
    """Format the recall call as the model would write its arguments."""
    return f'recall {{"callId": "{call}"}}' if call else f'recall {{"messageId": {message}}}'


def cut_text(text: str, tokens: int, cost: TextCost, way: str, tail_share: float = TAIL_SHARE) -> str:
    """Return the text, or its head and tail around a line with the omitted amount and how to read it. Without a `way`
    to read it, that line is only an ellipsis."""
    if cost(text) <= tokens:
        return text
    left = max(0, tokens - cost(_format_omission("", text, way)))
    keep = int(len(text) * left / max(1, cost(text)))
    while True:
        head, tail = _split_ends(text, keep, int(keep * tail_share))
        gap = text[len(head) : len(text) - len(tail)]
        omission = _format_omission(head, gap, way)
        shortened = "\n".join(filter(None, (head.rstrip("\n"), omission, tail.lstrip("\n"))))
        if keep == 0 or cost(shortened) <= tokens:
            return shortened if cost(shortened) < cost(text) else text
        keep = int(keep * 0.85) if keep > 8 else 0


def _split_ends(text: str, keep: int, from_tail: int) -> tuple[str, str]:
    """Split off head and tail with `keep` characters in total, at line borders if one is near."""
    head, tail = text[: keep - from_tail], text[len(text) - from_tail :]
    line, start = head.rfind("\n"), tail.find("\n")
    if line > len(head) // 2:
        head = head[: line + 1]
    if 0 <= start < len(tail) // 2:
        tail = tail[start + 1 :]
    return head, tail


def _format_omission(head: str, gap: str, way: str) -> str:
    """Format the omission line. Line numbers and offsets refer to the whole text, as `recall` counts them."""
    if not way:
        return "[…]"
    lines, first = gap.count("\n") + 1, head.count("\n") + 1
    if lines == 1 and way.endswith("}"):
        return f'[... {len(gap)} characters left out; {way[:-1]}, "offset": {len(head)}}} reads them]'
    asked = f'{way[:-1]}, "startLine": {first}}}' if way.endswith("}") and first > 1 else way
    return f"[... {lines} lines, {len(gap)} characters omitted; {asked} reads them]"


def fold_result(message: PromptMessage, cost: TextCost) -> PromptMessage:
    """Cut an old tool result to a few lines. Results that are already cut and short stay unchanged."""
    if re.search(_MARK, message.content) and cost(message.content) <= 2 * FOLDED_RESULT_TOKENS:
        return message
    way = format_recall_call(message.sources[0] if message.sources else None, message.call_id)
    content = cut_text(message.content, FOLDED_RESULT_TOKENS, cost, way, get_tail_share(message))
    return msgspec.structs.replace(message, content=content, images=())


def get_tail_share(message: PromptMessage) -> float:
    """Return the share of the tail to keep: 0 for tools that list the best results first."""
    return 0.0 if message.tool_name in BEST_FIRST_TOOLS else TAIL_SHARE


def fold_calls(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """Cut long texts in call arguments, such as the content of a written file, to head and tail."""
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
    """Replace old messages with one engine-written line that cites their numbers."""
    ids = list_numbers(messages)
    said = "; ".join(filter(None, map(_summarize_message, messages)))
    return PromptMessage(role="system", content=f"{LINE_PREFIX}{format_number_ranges(ids)}: {said[:240]}]", sources=ids)


def is_folded_line(message: PromptMessage) -> bool:
    return message.role == "system" and message.content.startswith(LINE_PREFIX)


def merge_folded_lines(lines: Sequence[PromptMessage]) -> PromptMessage:
    """Merge several folded lines into one that keeps only the numbers."""
    ids = list_numbers(lines)
    return PromptMessage(
        role="system", content=f"{LINE_PREFIX}{format_number_ranges(ids)}; recall brings them back]", sources=ids
    )


def write_digest(groups: Sequence[Group], tokens: int, cost: TextCost) -> str:
    """Write a summary without a model: a line per group. If not all fit, the newest are kept."""
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
    for name in ("path", "command", "pattern", "url", "query"):
        if isinstance(value := arguments.get(name), str):
            return value[:60]
    return ""


def add_companions(message: PromptMessage, primed: str, aside: str) -> PromptMessage:
    """Add the primed files and short-lived facts to a user message. Both are dropped when the message is old."""
    content = message.content + (f"\n\n{primed}" if primed else "") + (f"{ASIDE}{aside}\n</now>" if aside else "")
    return msgspec.structs.replace(message, content=content, own_chars=len(message.content))


def remove_aside(message: PromptMessage) -> PromptMessage:
    if message.role != "user" or message.own_chars is None:
        return message
    return msgspec.structs.replace(message, content=message.split_content()[0], own_chars=None)


def shorten_message(message: PromptMessage, tokens: int, cost: TextCost) -> PromptMessage:
    """Cut a message to head, tail and a recall call."""
    way = format_recall_call(message.sources[0] if message.sources else None)
    return msgspec.structs.replace(message, content=cut_text(message.content, tokens, cost, way))


def list_numbers(messages: Sequence[PromptMessage]) -> tuple[int, ...]:
    """List the numbers of the recorded messages behind these."""
    return tuple(sorted({number for message in messages for number in message.sources}))


def strip_markers(text: str) -> str:
    return _MARKERS.sub(" ", text) if "[" in text or "recall" in text else text


def find_facts(texts: Iterable[str]) -> tuple[str, ...]:
    """Find the facts to protect in these texts, each once, in order of appearance."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    for text in map(strip_markers, texts):
        for line in text.splitlines():
            if _ERROR.search(line[:MAX_ERROR_CHARS]):
                found[line.strip()[:MAX_ERROR_CHARS]] = None
            found.update((quoted.strip(), None) for quoted in _QUOTED.findall(line) if quoted.strip())
            words = [word for word in dict.fromkeys(line.split()) if word not in seen]
            seen.update(words)
            for word in words:
                if not _is_plain(word):
                    found.update((fact, None) for fact in _find_in_word(word[:MAX_WORD_CHARS]))
    return tuple(found)


def _is_plain(word: str) -> bool:
    """Return True for an ordinary word of prose."""
    bare = word.strip(".,;:!?()\"'")
    return bare.isalpha() and bare[1:].islower()


def _find_in_word(word: str) -> list[str]:
    """Find the facts in a word. A URL or path counts as one fact."""
    if url := _URL.search(word):
        return [url.group().rstrip(".,;:")]
    places = [place.rstrip(".") for place in _PATH.findall(word)]
    rest = _PATH.sub(" ", word)
    digits = [number for number in _NUMBER.findall(rest) if sum(map(str.isdigit, number)) >= 3]
    return [*places, *digits, *_NAME.findall(rest)]


def find_missing(text: str, wanted: Iterable[str]) -> list[str]:
    return [fact for fact in wanted if fact not in text]
