"""A streamed answer in which calls may be written as text: what cannot be a call goes out at once, what may be is
held."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ollm.domain.lazy import compile_late
from ollm.domain.model_facts import WrittenForm
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece
from ollm.providers.text_calls.call_ends import JsonEndScanner, MarkEndScanner, ends_inside_quotes
from ollm.providers.text_calls.call_scanner import (
    CallOpening,
    compile_opening_pattern,
    find_partial_mark,
    has_mark_character,
    has_named_call,
    may_be_call,
    read_opening,
)
from ollm.providers.text_calls.repair import MAX_CALL_CHARACTERS, parse_calls

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
    """Takes the text of one answer as it comes, gives back what a person may see.

    `careful` is for models known to call natively: there JSON counts as a call only when the answer holds nothing else.
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
        """Calls were made and something else follows, or more of them than one can know without a result: whatever
        comes now is made up."""
        if len(self.calls) >= MAX_CALLS:
            return True
        rest = _NOISE.sub("", self._after)
        return bool(self.calls) and bool(rest) and not re.fullmatch(r"<[/\w|]{0,30}", rest)

    @property
    def held_text(self) -> str:
        """Text that is not shown yet."""
        return self._waiting

    @property
    def is_calling(self) -> bool:
        """A call of an offered tool is being written, for certain."""
        return self._open is not None and (self._open.kind == "tag" or has_named_call(self._waiting, self._offered))

    def feed(self, text: str) -> str:
        if not self._offered:
            self.shown += text
            return text
        self._waiting += text
        return self._release_text(final=False)

    def finish(self) -> str:
        """The answer is over: what is still held is a call, an attempt at one, or text after all."""
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
        """Decide about the front of what waits; None when more has to come first."""
        if not self._waiting:
            return None
        if self._passing is not None:
            return self._pass(self._passing)
        if self._open is None:
            return self._find_mark(final=final)
        return self._hold_mark(self._open, final=final)

    def _find_mark(self, *, final: bool) -> str | None:
        """Find the next mark. Text before it is released, and all text if there is none."""
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
        """Thoughts, code in a fence and JSON that is no call go out as they come; only their end is looked for."""
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
        if end is None and ends_inside_quotes(body):
            return self._reject(self._waiting, BROKEN_OFF_MISTAKE)
        return self._close(mark, self._waiting[: len(self._waiting) if end is None else mark.end + end])

    def _is_plausible(self, mark: CallOpening, body: str) -> bool:
        if mark.kind == "tag":
            inner = body.partition(">")[2] if mark.end == 0 else body
            return not inner.strip() or inner.lstrip().startswith(("{", "[", "<", "`"))
        if self._careful and self.shown.strip():
            return False
        return may_be_call(body, self._offered)

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

    def _close(self, mark: CallOpening, block: str) -> str:
        self._open = None
        body = block[mark.end :]
        if mark.kind == "fence":
            body = body.strip().removesuffix("```").rstrip("`")
        elif mark.end and mark.closer:
            body = body.removesuffix(mark.closer)
        reading = parse_calls(body, self._offered)
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
        """It is no call: it goes out, and what belongs to it passes."""
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
