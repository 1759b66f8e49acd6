"""Tool output for models and people (T9): cleaned, within limits, with a note on omissions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ollm.config.settings import OutputSettings
from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data
from ollm.domain.text import cut_middle
from ollm.system.terminal_text import replace_letters
from ollm.tools.framework.base import Keep

MAX_KEPT_CHARS = 1024 * 1024
MAX_HELD_CHARS = 256

# CSI, OSC and the other strings (DCS, SOS, PM, APC) with their 7- and 8-bit forms, then any two- or three-byte escape.
# A string that never ends is cut at the line, so that one stray introducer does not swallow the output.
_ESCAPES = compile_late(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# What starts with an introducer and has come to its end, so that nothing in a later piece belongs to it.
_COMPLETE = compile_late(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[^ -?]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*[\x07\x1b\x9c\n]"
    r"|\x1b[ -/]*[^ -/\[\]PX^_]"
    r"|\r.",
    re.DOTALL,
)
_CONTROLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
_CONTROLS |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD), **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)}
_PLAIN = bytes([0x09, 0x0A, *range(0x20, 0x7F)])
_TEMPLATE_MARK = compile_late(
    r"<(?=[|\uff5c][^<>\n]{1,40}[|\uff5c]>|/?(?:s|bos|eos|think|start_of_turn|end_of_turn|tool_call|tool_response)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
# Bidi embeddings, overrides and isolates turn text round; tag characters hide whole sentences from people.
_DECEIVING = compile_late("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_FIRST_TAG = "\U000e0000"
_SUSPECT = compile_late(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Remove terminal escape sequences and hidden text. Direction controls become escapes, other control characters
    become pictures (ESC is ␛), and CRLF becomes LF."""
    if not text.isascii():
        text = _DECEIVING.sub(_show_direction, text)
    if _is_plain(text):
        return text
    return show_controls(_ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def disarm_template_marks(text: str) -> str:
    """Remove chat template marks from untrusted text. Some servers interpret them anywhere, so that a page could end
    its own message and begin one as the user."""
    return _TEMPLATE_MARK.sub(r"\g<0> ", text)


def _show_direction(found: re.Match[str]) -> str:
    return "" if found[0] >= _FIRST_TAG else found[0].encode("unicode_escape").decode()


def show_controls(text: str) -> str:
    """Show control characters, including those of escape sequences, as pictures. Nothing is removed (CRLF is LF)."""
    if _is_plain(text):
        return text
    text = text.replace("\r\n", "\n")
    found = [letter for letter in set(text) if ord(letter) in _CONTROLS]
    return replace_letters(text, found, lambda letter: chr(_CONTROLS[ord(letter)]))


def _is_plain(text: str) -> bool:
    if text.isascii():
        return not text.encode("ascii").translate(None, _PLAIN)
    return not _SUSPECT.search(text)


def append_notes(text: str, notes: Iterable[str]) -> str:
    """Append notes of ours in brackets below a text, one per line. Empty ones are left out."""
    said = "\n".join(f"[{note}]" for note in notes if note)
    end = "" if not said or not text or text.endswith("\n") else "\n"
    return f"{text}{end}{said}"


class StreamCleaner:
    """A cleaner for streamed output that handles split escape sequences and stops at 1 MiB."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._held = ""
        self._left = MAX_KEPT_CHARS

    def feed(self, text: str) -> None:
        if not self._left:
            return
        text = self._held + text
        start = max(text.rfind(mark) for mark in "\x1b\x90\x98\x9b\x9d\x9e\x9f\r")
        held = len(text) - start <= MAX_HELD_CHARS and start >= 0 and not _COMPLETE.match(text, start)
        self._held = text[start:] if held else ""
        self._send(text[:start] if held else text)

    def close(self) -> None:
        self._send(self._held)
        self._held = ""

    def _send(self, text: str) -> None:
        shown = clean_text(text)[: self._left]
        self._left -= len(shown)
        if shown:
            self._emit(shown if self._left else f"{shown}\n[… more output, shown when it finishes …]\n")


class TrimmedOutput(Data, frozen=True):
    """Text within its limits; `full` is the whole text (at most 1 MiB: head and tail of more), or None if nothing
    was omitted."""

    text: str
    full: str | None = None


def trim_output(text: str, limits: OutputSettings, *, keep: Keep = "head", way_back: str = "") -> TrimmedOutput:
    """Keep the head, or head and tail, and state how much was omitted and how to get it (`way_back`, in which LINE is
    replaced by the first missing line)."""
    if len(text) <= limits.max_chars and text.count("\n", 0, len(text) - 1) < limits.max_lines:
        return TrimmedOutput(text=text)
    share = 1.0 if keep == "head" else 0.5
    head = take_head(text, int(limits.max_chars * share), max(int(limits.max_lines * share), 1))
    left = 0 if keep == "head" else limits.max_chars - len(head)
    tail = _take_tail(text[len(head) :], left, max(limits.max_lines // 2, 1))
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.count("\n") + (not gone.endswith("\n"))
    note = f"[… {lines:,} {'line' if lines == 1 else 'lines'}, {len(gone):,} characters omitted"
    way = way_back.replace("LINE", str(head.count("\n") + 1))
    note += f"; {way} …]" if way else " …]"
    before = "" if head.endswith("\n") or not head else "\n"
    return TrimmedOutput(text=f"{head}{before}{note}" + (f"\n{tail}" if tail else ""), full=trim_for_session(text))


def trim_for_session(text: str) -> str:
    """Trim a long output for the session: all of it, or head and tail of 1 MiB."""
    size = len(text.encode("utf-8", "replace"))
    if size <= MAX_KEPT_CHARS:
        return text
    return cut_middle(text, int(MAX_KEPT_CHARS * len(text) / size) - 100)


def _take_tail(text: str, chars: int, lines: int) -> str:
    """Take at most this much of the end, from the start of a line if one is near."""
    tail = text[max(len(text) - chars, 0) :] if chars else ""
    parts = tail.removesuffix("\n").rsplit("\n", lines)
    if len(parts) > lines:
        return tail[len(parts[0]) + 1 :]
    broken = len(parts[0]) + 1
    return tail[broken:] if len(tail) < len(text) and 1 < broken <= len(tail) // 2 else tail


def take_head(text: str, chars: int, lines: int) -> str:
    """Take at most this much, up to a line break if one is near, without splitting a character from its marks."""
    end = -1
    for _ in range(lines):
        following = text.find("\n", end + 1, chars)
        if following < 0:
            break
        end = following
    else:
        return text[: end + 1]
    whole_lines = text[: end + 1]
    return whole_lines if len(whole_lines) >= len(text[:chars]) // 2 else _cut_at_character(text, chars)


def _cut_at_character(text: str, end: int) -> str:
    import unicodedata

    while 0 < end < len(text) and (unicodedata.combining(text[end]) or text[end] in "\u200d\ufe0f"):
        end -= 1
    return text[:end]
