"""Find the beginning of tool calls written as text: tags, fences, bare JSON. Decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data
from ollm.providers.text_calls.repair import ARGUMENT_KEYS, NAME_KEYS, strip_tool_prefix

TAGS = ("tool_call", "tools", "tool_use", "tool", "function_call", "function_calls", "invoke", "function")
FENCE_LANGUAGES = ("", "json", "tool_call", "tool_calls", "tool_code", "xml", "tool", "jsonc", "json5")
OTHER_KEYS = frozenset({"call_id", "id", "type", "tool_calls", "function_call", "tool_call"})
MAX_UNDECIDED_CHARACTERS = 400  # characters after which JSON without a tool's name is no call

_JSON_START = r"[\s\[]*(?:\{\s*(?:[\"']?([\w-]*)(?:([\"']?\s*:)|[\"']?\s*))?)?"
_NAME_PAIR = r"\{\s*[\"']?(\w+)[\"']?\s*:\s*[\"']([^\"'\n]*)[\"']\s*(?:(\})|,\s*[\"']?(\w+)[\"']?\s*:)?"


class CallOpening(Data, frozen=True):
    """Possible beginning of a call: `at` is the position of its mark, `end` that of its body; with no `closer` JSON
    ends it."""

    kind: str  # "tag", "fence", "json", "think"
    at: int
    end: int
    closer: str = ""


@lru_cache(maxsize=64)
def compile_opening_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the first mark. JSON and fences count at the beginning of a line only; tags and tools' names anywhere."""
    tags = "|".join((*TAGS, *map(re.escape, sorted(names, key=len, reverse=True))))
    return compile_late(
        rf"<(?P<think>think)>|(?P<tag><(?P<name>{tags})(?:>|=[\w.-]+>|\s[^<>\n]{{0,120}}>))"
        r"|(?P<mark>\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call(?:s|_begin)?\|>)"
        r"|(?:^|(?<=\n))[ \t]*(?:(?P<fence>`{3,}[ \t]*(?P<info>[\w-]*)[ \t]*(?=[\n\{\[<]))|(?P<json>(?=[\{\[])))",
    )


def has_mark_character(text: str) -> bool:
    """True if a mark can be in it at all: most of what is streamed are words."""
    return "<" in text or "[" in text or "{" in text or "`" in text


def find_partial_mark(text: str, names: Iterable[str]) -> int:
    """From where on the end of a text could still become a mark; its length when it cannot."""
    line = text.rfind("\n") + 1
    tail = text[line:]
    if not tail.strip(" \t") or ("`" in tail and re.fullmatch(r"[ \t]*(?:`{1,2}|`{3,}[ \t]*[\w-]*[ \t]*)", tail)):
        return line
    at = max(text.rfind("<"), text.rfind("["))
    if at < 0 or len(text) - at > 140 or ">" in text[at:] or "\n" in text[at:]:
        return len(text)
    known = (*TAGS, "think", "|python_tag|", "|tool_calls|", "|tool_call_begin|", *names)
    marks = [*(f"<{name}" for name in known), "[TOOL_CALLS]"]
    start = text[at:]
    alike = any(mark.startswith(start) or (start.startswith(mark) and mark[0] == "<") for mark in marks)
    return at if alike else len(text)


def read_opening(found: re.Match[str]) -> CallOpening:
    if found["think"]:
        return CallOpening(kind="think", at=found.start(), end=found.end(), closer="</think>")
    if found["tag"]:
        name = found["name"]
        bare = name in ("tool_call", "tools", "tool_use", "function_call", "function_calls") or found["tag"] == "<tool>"
        end = found.end() if bare else found.start()
        return CallOpening(kind="tag", at=found.start(), end=end, closer=f"</{name}>")
    if found["mark"]:
        return CallOpening(kind="tag", at=found.start(), end=found.end())
    if found["fence"]:
        kind = "fence" if found["info"].lower() in FENCE_LANGUAGES else "other"
        return CallOpening(kind=kind, at=found.start("fence"), end=found.end("fence"), closer="\n```")
    return CallOpening(kind="json", at=found.end(), end=found.end())


def may_be_call(body: str, names: Iterable[str]) -> bool:
    """Return True if incomplete JSON could still become a call of one of these, judged by its first keys."""
    known = frozenset(names)
    body = body.strip()
    if not body or body.startswith("<"):
        return True
    start = re.match(_JSON_START, body)
    if start is None or not body.startswith(("{", "[")):
        return False
    if start[2] is None:
        return start.end() == len(body)
    key = start[1]
    if key in known or key in ARGUMENT_KEYS or key in OTHER_KEYS:
        return len(body) < MAX_UNDECIDED_CHARACTERS or any(f'"{name}"' in body for name in known)
    return key in NAME_KEYS and _names_known_tool(body, known)


def _names_known_tool(body: str, known: frozenset[str]) -> bool:
    """The first key holds a name: it is a tool's, or arguments come next, or it is not whole yet."""
    pair = re.search(_NAME_PAIR, body)
    if pair is None:
        return len(body) < MAX_UNDECIDED_CHARACTERS
    if strip_tool_prefix(pair[2]) in known:
        return True
    if pair[3]:
        return False
    return pair[4] is None or pair[4] in ARGUMENT_KEYS


def has_named_call(text: str, names: Iterable[str]) -> bool:
    """True if JSON in this text already names one of these as what to call."""
    pair = re.search(_NAME_PAIR, text)
    return pair is not None and pair[1] in NAME_KEYS and strip_tool_prefix(pair[2]) in frozenset(names)
