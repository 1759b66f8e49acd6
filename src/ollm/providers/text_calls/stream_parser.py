"""A streamed answer that may contain calls as text: plain text is released at once, possible calls are held."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from ollm.domain.lazy import compile_late
from ollm.domain.model_facts import WrittenForm
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece
from ollm.providers.text_calls.repair import MAX_CALL_CHARACTERS, parse_calls

TAGS = ("tool_call", "tools", "tool_use", "tool", "function_call", "function_calls", "invoke", "function")
FENCE_LANGUAGES = ("", "json", "tool_call", "tool_calls", "tool_code", "xml", "tool", "jsonc", "json5")


class CallOpening(Data, frozen=True):
    """Possible beginning of a call: `at` is the position of its mark, `end` that of its body. Without a `closer` it
    ends with its JSON value."""

    kind: str  # "tag", "fence", "json", "think"
    at: int
    end: int
    closer: str = ""


@lru_cache(maxsize=64)
def compile_opening_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for the first mark. JSON and fences count only at line starts, tags and tool names anywhere."""
    tags = "|".join((*TAGS, *map(re.escape, sorted(names, key=len, reverse=True))))
    return compile_late(
        rf"<(?P<think>think)>|(?P<tag><(?P<name>{tags})(?:>|=[\w.-]+>|\s[^<>\n]{{0,120}}>))"
        r"|(?P<mark>\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call(?:s|_begin)?\|>)"
        r"|(?:^|(?<=\n))[ \t]*(?:(?P<fence>`{3,}[ \t]*(?P<info>[\w-]*)[ \t]*(?=[\n\{\[<]))|(?P<json>(?=[\{\[])))",
    )


def has_mark_character(text: str) -> bool:
    """Return True if the text may contain a mark. Most streamed text is plain words."""
    return "<" in text or "[" in text or "{" in text or "`" in text


def find_partial_mark(text: str, names: Iterable[str]) -> int:
    """Return the offset from which the text could still become a mark, or its length if it cannot."""
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


class JsonEndScanner:
    """A scanner for the end of the first JSON value. Brackets inside quotes do not count."""

    _OUTSIDE = compile_late(r"[\"{}\[\]]")
    _INSIDE = compile_late(r"[\"\\]")

    def __init__(self) -> None:
        self.closed = False
        self.quoted = False
        self._escaped = False
        self._depth = 0

    def scan(self, text: str) -> int | None:
        """Return the offset behind the closing bracket, or None while the value is open."""
        place = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while found := (self._INSIDE if self.quoted else self._OUTSIDE).search(text, place):
            place = found.end()
            match found[0]:
                case "\\":
                    place += 1
                    self._escaped = place > len(text)
                case '"':
                    self.quoted = not self.quoted
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth <= 0:
                        self.closed = True
                        return place
        return None


class MarkEndScanner:
    """A scanner for the end of a mark's first occurrence."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._tail = ""

    def scan(self, text: str) -> int | None:
        whole = self._tail + text
        at = whole.find(self._mark)
        if at >= 0:
            return at + len(self._mark) - len(self._tail)
        self._tail = whole[-(len(self._mark) - 1) :]
        return None


def ends_inside_quotes(text: str) -> bool:
    """Return True if the text ends inside quotes: an incomplete value must not be used."""
    scan = JsonEndScanner()
    while (end := scan.scan(text)) is not None:
        text, scan = text[end:], JsonEndScanner()
    return scan.quoted


FORMS: dict[str, WrittenForm] = {"tag": "tag", "fence": "fence", "json": "json"}
BROKEN_OFF_MISTAKE = "it breaks off in the middle."
MAX_CALLS = 4  # calls in one answer
MISTRAL = "[TOOL_CALLS]"  # begins like JSON
_NOISE = compile_late(r"</?[\w=.|-]{0,30}>|`{1,3}|\[/TOOL_CALLS\]|[\s;,\]]")


class CallAttempt(Data, frozen=True):
    """A malformed tool call: its text, and the mistake in one line."""

    text: str
    mistake: str


class CallStreamParser:
    """A parser for the streamed text of one answer that returns the text to display.

    `careful` is for models known to call natively: JSON then counts as a call only if the answer contains nothing else.
    """

    def __init__(self, tools: Sequence[ToolSchema], *, careful: bool = False) -> None:
        self.calls: list[CallPiece] = []
        self.attempts: list[CallAttempt] = []
        self.shown = ""
        self.form: WrittenForm | None = None  # how the first call was written
        self._offered = {tool.name: tool for tool in tools}
        self._marks = compile_opening_pattern(tuple(self._offered))
        self._careful = careful
        self._waiting = ""  # text that is not decided yet; begins with the mark while one is open
        self._before = "\n"  # the character in front of it
        self._open: CallOpening | None = None
        self._json = JsonEndScanner()
        self._scanned = 0
        self._passing: JsonEndScanner | MarkEndScanner | None = None
        self._after = ""

    @property
    def is_over(self) -> bool:
        """True if text follows the calls, or there are too many calls: the rest is made up."""
        if not self.calls or len(self.calls) >= MAX_CALLS:
            return bool(self.calls)
        rest = _NOISE.sub("", self._after)
        return bool(rest) and not re.fullmatch(r"<[/\w|]{0,30}", rest)

    @property
    def held_text(self) -> str:
        return self._waiting

    def feed(self, text: str) -> str:
        if not self._offered:
            self.shown += text
            return text
        self._waiting += text
        return self._release_text(final=False)

    def finish(self) -> str:
        """End the answer: the held text is a call, an attempt at one, or plain text."""
        return self._release_text(final=True)

    def _release_text(self, *, final: bool) -> str:
        released = ""
        while (step := self._step(final=final)) is not None:
            if self.calls:
                self._after += step
            else:
                released += step
        self.shown += released
        return released

    def _step(self, *, final: bool) -> str | None:
        """Process the front of the waiting text, or return None if more text is needed."""
        if not self._waiting:
            return None
        if self._passing is not None:
            return self._pass(self._passing)
        if self._open is None:
            return self._find_mark(final=final)
        return self._hold_mark(self._open, final=final)

    def _find_mark(self, *, final: bool) -> str | None:
        """Find the next mark. Release the text before it, or all text if there is no mark."""
        shift = len(self._before)
        found = self._marks.search(self._before + self._waiting) if has_mark_character(self._waiting) else None
        if found is None:
            free = (
                len(self._waiting) if final else find_partial_mark(self._before + self._waiting, self._offered) - shift
            )
            return self._consume(max(0, free)) or None
        mark = read_opening(found)
        if mark.kind == "json" and MISTRAL.startswith(self._waiting[mark.at - shift :]) and not final:
            return None
        text = self._consume(max(0, mark.at - shift))
        if mark.kind in ("think", "other"):
            self._passing = MarkEndScanner(mark.closer)
            return text + self._consume(mark.end - mark.at)
        self._open = msgspec.structs.replace(mark, at=0, end=mark.end - mark.at)
        self._json, self._scanned = JsonEndScanner(), 0
        return text

    def _pass(self, passing: JsonEndScanner | MarkEndScanner) -> str:
        """Release text up to the end of thinking, fenced code or JSON that is not a call."""
        end = passing.scan(self._waiting)
        if end is not None:
            self._passing = None
        return self._consume(len(self._waiting) if end is None else end)

    def _hold_mark(self, mark: CallOpening, *, final: bool) -> str | None:
        body = self._waiting[mark.end :]
        if not self._is_plausible(mark, body) or len(body) > MAX_CALL_CHARACTERS:
            return self._release_block(mark)
        end = self._find_end(mark, body)
        if end is None and not final:
            return None
        if end is None:
            return self._close(mark, self._waiting, breaks_off=ends_inside_quotes(body))
        return self._close(mark, self._waiting[: mark.end + end])

    def _is_plausible(self, mark: CallOpening, body: str) -> bool:
        if mark.kind == "tag":
            inner = body.partition(">")[2] if mark.end == 0 else body
            return not inner.strip() or inner.lstrip().startswith(("{", "[", "<", "`"))
        if self._careful and self.shown.strip():
            return False
        return not body.strip() or body.lstrip().startswith(("{", "[", "<"))

    def _find_end(self, mark: CallOpening, body: str) -> int | None:
        if not self._json.closed and (mark.kind != "tag" or not mark.closer):
            closed = self._json.scan(body[self._scanned :])
            self._scanned = len(body) if closed is None else self._scanned + closed
        if mark.kind == "fence":
            early = _find_after(body, "\n```", 0)
            return early if early is not None or not self._json.closed else _find_after(body, "```", self._scanned)
        if mark.closer:
            return _find_after(body, mark.closer, 0)
        return self._scanned if self._json.closed else None

    def _close(self, mark: CallOpening, block: str, *, breaks_off: bool = False) -> str:
        self._open = None
        body = block[mark.end :]
        if mark.kind == "fence":
            body = body.strip().removesuffix("```").rstrip("`")
        elif mark.end and mark.closer:
            body = body.removesuffix(mark.closer)
        reading = parse_calls(body, self._offered)
        if breaks_off and (mark.kind == "tag" or reading.calls or reading.meant):
            return self._reject(block, BROKEN_OFF_MISTAKE)
        if reading.calls:
            self._consume(len(block))
            self.form = self.form or FORMS[mark.kind]
            self.calls += reading.calls[: MAX_CALLS - len(self.calls)]
            return ""
        if not reading.meant and mark.kind != "tag":
            return self._consume(len(block))
        return self._reject(block, reading.mistake)

    def _reject(self, block: str, mistake: str) -> str:
        self._open = None
        self.attempts.append(CallAttempt(text=self._consume(len(block)), mistake=mistake))
        return ""

    def _release_block(self, mark: CallOpening) -> str:
        """Release a block that is not a call."""
        self._open = None
        if mark.kind == "tag":
            return self._consume(max(1, mark.end))
        text = self._consume(mark.end)
        self._passing = MarkEndScanner("\n```") if mark.kind == "fence" else JsonEndScanner()
        return text

    def _consume(self, length: int) -> str:
        text, self._waiting = self._waiting[:length], self._waiting[length:]
        if text:
            self._before = text[-1]
        return text


def _find_after(text: str, mark: str, start: int) -> int | None:
    at = text.find(mark, start)
    return None if at < 0 else at + len(mark)
