"""Finds the calls that end an answer, for a model that writes them as text (T10.1).

A call counts only in the model's own form, at the start of a line, outside fences, and if nothing but calls follows:
text that the model quotes is never one. The whole answer is judged, so its pieces make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from ollm.domain.lazy import compile_late
from ollm.domain.model_facts import WrittenForm
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece
from ollm.providers.text_calls.repair import MAX_CALL_CHARACTERS, breaks_off, parse_calls

MAX_CALLS = 4
CODE_INDENT = 4  # Markdown shows a line indented so far as code.
BROKEN_OFF_MISTAKE = "it breaks off in the middle."
_FIRST = ("`", "~", "<", "[", "{")  # Lines that begin otherwise need no patterns.
_FENCE = compile_late(r"[ \t]*(`{3,}|~{3,})")
_MAY_OPEN = compile_late(r"`*|`{3,}[a-z]*[ \t]*|[{\[]\s*")  # A fence or JSON may follow.


class CallPattern(Data, frozen=True):
    """One form of calls: the mark that begins a line, its pattern, and the pattern of a whole call, with its body as
    the last group. A call may lack its end only at the end of the answer."""

    mark: str
    opening: re.Pattern[str]
    call: re.Pattern[str]


def _compile(mark: str, opening: str, call: str) -> CallPattern:
    return CallPattern(mark=mark, opening=compile_late(opening), call=compile_late(call, re.DOTALL))


PATTERNS: dict[WrittenForm, CallPattern] = {
    "tag": _compile("<tool_call>", "<tool_call>", r"<tool_call>(.*?)(?:</tool_call>|\Z)"),
    "function": _compile("<function=", "<function=", r"(<function=.*?(?:</function>|\Z))"),
    "invoke": _compile("<invoke ", "<invoke ", r"(<invoke .*?(?:</invoke>|\Z))"),
    "mistral": _compile("[TOOL_CALLS]", r"\[TOOL_CALLS\]", r"\[TOOL_CALLS\](.*)"),
    "python": _compile("<|python_tag|>", r"<\|python_tag\|>", r"<\|python_tag\|>(.*)"),
    "fence": _compile(
        "```json",
        r"`{3,}(?:json)?[ \t]*(?=[\n{\[])",
        r"(`{3,})(?:json)?[ \t]*(?=[\n{\[])(?=\s*(?:\Z|\{\s*[^{\[]|\[\s*[^\w]|[{\[]\s*\Z))(.*?)"
        r"(?:\n[ \t]*\1(?=\s)|\1(?=\s*\Z)|\Z)",
    ),
    "json": _compile("{", r"[{\[]\s*[{\"]", r"([{\[](?:.*?[}\]](?=\s*(?:\n\s*\n|\Z))|.*))"),
}


class WrittenCalls(Data, frozen=True):
    """The end of an answer that consists of calls. `mistake` is a one-line reason why they cannot be made."""

    start: int
    form: WrittenForm
    calls: tuple[CallPiece, ...] = ()
    mistake: str = ""


def find_calls(text: str, tools: Sequence[ToolSchema], forms: Collection[WrittenForm]) -> WrittenCalls | None:
    """Find the calls that end a whole answer, or the attempt at one."""
    offered = {tool.name: tool for tool in tools}
    for start, form in OpeningScanner(forms).scan(text, final=True):
        bodies = split_calls(text, start, form)
        if not bodies or len(text) - start > MAX_CALL_CHARACTERS:
            continue
        readings = [parse_calls(body, offered) for body in bodies[:MAX_CALLS]]
        calls = tuple(call for reading in readings for call in reading.calls)
        meant = calls or form not in ("fence", "json") or any(reading.meant for reading in readings)
        last = bodies[-1].strip()
        is_json = not last.startswith("<")
        if meant and is_json and breaks_off(last):
            return WrittenCalls(start=start, form=form, mistake=BROKEN_OFF_MISTAKE)
        if meant and last.endswith(("}", "]") if is_json else ">"):
            mistake = "" if calls else next(reading.mistake for reading in readings)
            return WrittenCalls(start=start, form=form, calls=calls[:MAX_CALLS], mistake=mistake)
    return None


def split_calls(text: str, start: int, form: WrittenForm) -> list[str]:
    """Return the bodies of the calls from `start` to the end of the answer, or [] if anything else is there."""
    bodies = list[str]()
    end = len(text.rstrip())
    while start < end:
        found = PATTERNS[form].call.match(text, start)
        if found is None:
            return []
        bodies.append(found[found.lastindex or 0])
        start = found.end()
        while start < end and text[start].isspace():
            start += 1
    return bodies


class OpeningScanner:
    """Finds the lines that may open a call, outside fences."""

    def __init__(self, forms: Collection[WrittenForm]) -> None:
        self._forms = forms
        self.line = 0  # The next line to look at begins here.
        self.fence = ""

    def scan(self, text: str, *, final: bool = False) -> Iterator[tuple[int, WrittenForm]]:
        """Yield the openings in the lines that are new and complete."""
        while self.line < len(text):
            end = text.find("\n", self.line) + 1
            if not end and not final:
                return
            line = text[self.line : end or len(text)]
            lead = line[: len(line) - len(line.lstrip(" \t"))]
            start, self.line = self.line + len(lead), end or len(text)
            if not text.startswith(_FIRST, start):
                continue
            mark = _FENCE.match(line)
            if not self.fence:
                forms = self._forms if len(lead.expandtabs(CODE_INDENT)) < CODE_INDENT else ()
                yield from ((start, form) for form in forms if PATTERNS[form].opening.match(text, start))
                self.fence = mark[1] if mark and mark[1] not in line[mark.end() :] else ""
            elif mark and mark[1].startswith(self.fence) and not line[mark.end() :].strip():
                self.fence = ""


class CallStreamParser:
    """Takes the text of one answer as it streams, and returns the text to show. From a line on that may open a call in
    one of the forms, text is held back until something else follows or the answer ends."""

    def __init__(self, tools: Sequence[ToolSchema], forms: Collection[WrittenForm]) -> None:
        self.found: WrittenCalls | None = None
        self._tools = tools
        self._forms = forms if tools else ()
        self._scanner = OpeningScanner(self._forms)
        self._openings: list[tuple[int, WrittenForm]] = []
        self._text = ""
        self._shown = 0

    @property
    def shown(self) -> str:
        return self._text[: self._shown]

    @property
    def held(self) -> str:
        return self._text[self._shown :]

    def feed(self, text: str) -> str:
        self._text += text
        if self._openings and not any(mark in text for mark in "`>\n"):
            return ""
        return self._release(self._find_free_end() if self._forms else len(self._text))

    def finish(self) -> str:
        """End the answer. Return the held text unless it consists of calls."""
        self.found = find_calls(self._text, self._tools, self._forms) if self._forms else None
        return self._release(self.found.start if self.found else len(self._text))

    def _find_free_end(self) -> int:
        """Find where text begins that may still be calls."""
        self._openings += self._scanner.scan(self._text)
        while self._openings and not split_calls(self._text, *self._openings[0]):
            self._openings.pop(0)
        if self._openings:
            return self._openings[0][0]
        last = self._text[self._scanner.line :].lstrip(" \t")
        if self._scanner.fence or not last.startswith(_FIRST):
            return len(self._text)
        may_open = _MAY_OPEN.fullmatch(last) or any(
            PATTERNS[form].mark.startswith(last) or PATTERNS[form].opening.match(last) for form in self._forms
        )
        return self._scanner.line if may_open else len(self._text)

    def _release(self, end: int) -> str:
        text = self._text[self._shown : end] if end > self._shown else ""
        self._shown = max(end, self._shown)
        return text
