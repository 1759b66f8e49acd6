"""Reads the blocks of an answer: fenced shell commands, files under their names, and tools by their names.

A model without tool calls writes the form it has seen most: a fenced block. Pure: text in, blocks out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from ollm.domain.struct import Data

BlockKind = Literal["shell", "file", "tool", "code"]
FILE_BLOCK = "file_block"  # a call of write_file or edit_file whose file has not been looked at yet
CUT_OFF = "The block was cut off before its end: nothing was done. Write less at once."
REPEATED = "The block repeated itself and was stopped before its end: nothing was done."

SHELLS = frozenset({"bash", "sh", "shell", "console", "zsh", "terminal", "shell-session", "shellsession", "cmd"})
BARE_NAMES = frozenset(
    {"makefile", "dockerfile", "readme", "license", "licence", "changelog", "procfile", "gemfile", "justfile", "notes"}
)
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_FENCE_START = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_MAY_BE_NAME = re.compile(r"^[\s`~*#\d.)-]*(?:[Ff]ile(?:name)?:?\s*)?[\w./@+`*:-]*\s*$")
_PATH = re.compile(r"(?:\.{0,2}/)?[\w.@+-]*(?:/[\w.@+-]+)*")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_WINDOWS = re.compile(r"(?:[\w.@+-]+\\)+[\w.@+-]+", re.ASCII)
_NAME_MARKS = re.compile(r"^[\s*#`]*(?:(?:\d+[.)]|-)\s+)?[\s*#`]*(?:[Ff]ile(?:name)?:\s*)?")
_COMMENT_NAME = re.compile(
    r"^\s*(?:#|//|--|;|/\*|<!--)\s*(?:file(?:name)?\s*:\s*)?(\S+?)\s*(?:\*/|-->)?\s*$", re.IGNORECASE
)
_THOUGHT = re.compile(r"[ \t]*<(think(?:ing)?)>", re.IGNORECASE)
_INFO_NAME = re.compile(r"(?:title|file(?:name)?|path)\s*[=:]\s*[\"']?([^\"'\s]+)", re.IGNORECASE)


class Block(Data, frozen=True):
    """A fenced block. `end` is the start of the text after it; `closed` is False if the answer stopped early."""

    kind: BlockKind
    body: str
    start: int
    end: int
    path: str = ""
    language: str = ""
    closed: bool = True


def read_blocks(text: str, tools: Collection[str] = (), *, partial: bool = False) -> list[Block]:
    """Return all blocks of an answer in order. `partial`: the end of the answer is missing."""
    blocks: list[Block] = []
    lines = text.splitlines(keepends=True)
    place, number = 0, 0
    while number < len(lines):
        opening = _FENCE.match(lines[number].rstrip("\r\n"))
        if opening is None:
            place += len(lines[number])
            number += 1
            continue
        last, closed = _find_end(lines, number, opening, partial=partial)
        body = _remove_indent("".join(lines[number + 1 : last]).replace("\r\n", "\n"), len(opening["indent"]))
        end = place + sum(map(len, lines[number : last + closed]))
        blocks.append(_classify(opening["info"].strip(), body, lines[:number], place, end, closed, tools))
        number, place = last + closed, end
    return blocks


def find_steps(text: str, tools: Collection[str] = (), *, partial: bool = False) -> tuple[list[Block], int]:
    """Return the blocks that are calls, and where the text after them begins: any number of files, then at most one
    command or tool. Text after those was written without their result."""
    steps: list[Block] = []
    for block in read_blocks(text, tools, partial=partial):
        if block.kind == "code":
            if steps:
                break
            continue
        steps.append(block)
        if block.kind != "file":
            break
    return steps, steps[-1].end if steps else len(text)


def _find_end(lines: list[str], opened: int, opening: re.Match[str], *, partial: bool) -> tuple[int, bool]:
    """Return the line that closes the block, and whether there is one. A page of text may contain blocks itself, and
    so may the text that a command writes."""
    mark, depth = opening["mark"], 1
    nested = _is_page(opening["info"], lines[:opened])
    shell = _name_in_info(opening["info"].strip())[1] in SHELLS
    number = opened
    while (number := number + 1) < len(lines):
        if shell and (begins := HEREDOC.search(lines[number])):
            ends = (place for place in range(number + 1, len(lines)) if lines[place].strip() == begins[2])
            if end := next(ends, len(lines) if partial else 0):
                number = end
                continue
        found = _FENCE.match(lines[number].rstrip("\r\n"))
        if found is None or found["mark"][0] != mark[0] or len(found["mark"]) < len(mark):
            continue
        if found["info"].strip() or (nested and depth == 1 and _opens_inner(lines, number)):
            depth += nested
            continue
        depth -= 1
        if depth <= 0:
            return number, True
    return len(lines), False


def _opens_inner(lines: list[str], number: int) -> bool:
    """Return True if a bare fence in a page opens a block in it: text follows at once, and then two more fences."""
    follows = lines[number + 1].strip() if number + 1 < len(lines) else ""
    if not follows or follows.startswith("#") or looks_like_path(follows.strip("*#:` \t")):
        return False
    fences = [line for line in lines[number + 1 :] if _FENCE.match(line.rstrip("\r\n"))]
    bare = [line for line in fences if not line.strip().strip("`~")]
    return len(bare) == len(fences) and len(fences) >= 2 and len(fences) % 2 == 0


def _remove_indent(body: str, indent: int) -> str:
    """Remove the indentation of a block under a list item, up to that of its fence."""
    if not indent:
        return body
    lines = body.splitlines(keepends=True)
    return "".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines)


def _is_page(info: str, before: list[str]) -> bool:
    name = _name_in_info(info)[0] or _name_before(before)
    return name.endswith((".md", ".rst", ".mdx")) or info.split(" ", maxsplit=1)[0].lower() in ("markdown", "md")


def _classify(
    info: str,
    body: str,
    before: list[str],
    start: int,
    end: int,
    closed: bool,
    tools: Collection[str],
) -> Block:
    path, language = _name_in_info(info)
    shell = language in SHELLS
    path = path or _name_before(before, above_shell=shell)
    kind: BlockKind = "code"
    if language in tools:
        kind, path = "tool", ""
    elif shell or path or language not in ("output", "text", "txt", "plaintext"):
        found, rest = ("", body) if path else _name_inside(body)
        path, body = path or found, rest
        kind = "file" if path and (closed or body.strip()) else "code"
    if shell and not path and not body.startswith("#!") and (command := clean_command(body)).strip():
        kind, body = "shell", command
    return Block(kind=kind, body=body, start=start, end=end, path=path, language=language, closed=closed)


def clean_command(body: str) -> str:
    """Remove terminal prompts from a command. If there are prompts, the other lines are output."""
    lines = body.strip("\n").splitlines()
    prompted = [line.lstrip()[2:] for line in lines if line.lstrip().startswith("$ ")]
    return "\n".join(prompted) if prompted else body.strip("\n")


def looks_like_path(text: str) -> bool:
    """Return True if this is only a file name. The tools judge where it leads, and explain a refusal."""
    bare = text.removeprefix("./")
    if not bare or not _PATH.fullmatch(text) or not (last := bare.rsplit("/", 1)[-1]).strip("."):
        return False
    explicit = text.startswith(".") and "/" in text  # `../x`, `.git/config`
    return explicit or bool(_EXTENSION.search(last)) or last.lower() in BARE_NAMES


def _looks_like_place(text: str) -> bool:
    """Return True if this may be a file name, with or without an extension. That suffices above a shell block: a
    script intended as a file must not be run."""
    bare = text.removeprefix("~")
    dotted = "/" in bare or "." in bare.lstrip(".")
    plain = bool(_PATH.fullmatch(bare)) and dotted and not bare.endswith(".") and any(map(str.isalpha, bare))
    return plain or looks_like_path(text)


def _name_in_info(info: str) -> tuple[str, str]:
    """Find the file name and language after a fence: `python app.py`, `app.py`, `python:app.py`, `title=app.py`."""
    if named := _INFO_NAME.search(info):
        return named[1].removeprefix("./"), info.split(maxsplit=1)[0].lower()
    words = info.replace(":", " ").split()
    language = words[0].lower() if words else ""
    for word in words[:2]:
        if looks_like_path(word) and "." in word:
            return word.removeprefix("./"), "" if word == words[0] else language
    return "", language.strip("{}.")


def _name_before(before: list[str], *, above_shell: bool = False) -> str:
    """Find the file name on the line above. It must be alone, except for marks, a number or the label `File:`: a
    name inside a sentence does not name the block's file."""
    above = [line.strip() for line in before[-2:]]
    line = above[-1] if above and above[-1] else above[0] if above else ""
    plain = _NAME_MARKS.sub("", line).strip("*#:` \t\"'")
    plain = plain.replace("\\", "/") if _WINDOWS.fullmatch(plain) else plain
    is_name = _looks_like_place if above_shell else looks_like_path
    return plain.removeprefix("./") if is_name(plain) else ""


def _name_inside(body: str) -> tuple[str, str]:
    """Find the file name in a comment on the first line, or alone above a search block. Also return the rest."""
    first, _, rest = body.partition("\n")
    comment = _COMMENT_NAME.match(first)
    if comment and looks_like_path(comment[1]) and _EXTENSION.search(comment[1]):
        return comment[1].removeprefix("./"), rest
    if looks_like_path(first.strip()) and re.match(r"\s*<{5,9}", rest):
        return first.strip().removeprefix("./"), rest
    return "", body


class BlockStreamParser:
    """Takes the text of one answer as it streams, and returns the text to show to the user."""

    def __init__(self, tools: Collection[str]) -> None:
        self.steps: list[Block] = []
        self.cut = ""  # what was written behind the steps
        self.shown = self.thought = ""
        self._tools = tools
        self._text = ""
        self._decided = 0  # up to here every line was looked at
        self._released = 0
        self._is_open = False  # a block

    @property
    def is_over(self) -> bool:
        """True after a call of a command or tool: any later text is invented."""
        return bool(self.steps) and self.steps[-1].kind != "file" and self.steps[-1].closed

    @property
    def is_held(self) -> bool:
        """True while text is held back from the screen."""
        return self._is_open or _THOUGHT.match(self._text, self._decided) is not None

    def feed(self, text: str) -> str:
        self._text += text
        while not self._take_thought() and (end := self._text.find("\n", self._decided)) >= 0:
            begin, self._decided = self._decided, end + 1
            if _FENCE_START.match(self._text, begin):
                self._look_at_blocks()
            if self.is_over:
                return self._release(self._released)
        return self._release(self._find_free_end())

    def finish(self) -> str:
        """Finish the answer. Held text is a step, or plain text after all."""
        self._take_thought(final=True)
        self.steps, end = find_steps(self._text, self._tools)
        self.cut = self._text[end:]
        return self._release(self.steps[0].start if self.steps else len(self._text), final=True)

    def _take_thought(self, *, final: bool = False) -> bool:
        """Remove a thought that begins here: nothing in it is a step. Return True while its end is missing."""
        opening = None if self._is_open else _THOUGHT.match(self._text, self._decided)
        if opening is None:
            return False
        thought, closing, behind = self._text[opening.end() :].partition(f"</{opening[1]}>")
        if not closing and not final:
            return True
        self.thought += thought
        self._text = self._text[: self._decided] + behind.lstrip()
        return False

    def _look_at_blocks(self) -> None:
        """Read the blocks so far, since a fence opens one, closes one or is text that a command writes."""
        blocks = read_blocks(self._text[: self._decided], self._tools, partial=True)
        self._is_open = bool(blocks) and not blocks[-1].closed
        self.steps, _ = find_steps(self._text[: self._decided], self._tools, partial=True)

    def _find_free_end(self) -> int:
        """Find the end of text that cannot be part of a step: not inside a block, nor a line that may name its file."""
        if self.steps or self._is_open:
            return self._released
        free = len(self._text)
        last = self._text[self._decided :]
        if not last or _MAY_BE_NAME.match(last) or last.lstrip().startswith("<"):
            free = self._decided
            lines = self._text[self._released : free].splitlines(keepends=True)
            while lines and (not lines[-1].strip() or _MAY_BE_NAME.match(lines[-1])):
                free -= len(lines.pop())
        return max(free, self._released)

    def _release(self, end: int, *, final: bool = False) -> str:
        text = self._text[self._released : end] if end > self._released else ""
        if final and self.steps and (not self.shown or self.shown.endswith("\n") or "\n" in text.rstrip()):
            text = _drop_name_line(text)
        self._released = max(end, self._released)
        self.shown += text
        return text


def _drop_name_line(text: str) -> str:
    """Remove the line that only names a block's file from the text before the block."""
    lines = text.rstrip().splitlines()
    if lines and _name_before(lines[-1:], above_shell=True):
        return "\n".join(lines[:-1])
    return text
