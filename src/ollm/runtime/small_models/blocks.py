"""Reads the blocks of an answer. Three labels act: `run`, `write NAME` and `call TOOL`. Any other block is only shown.

A model without tool calls writes the form it has seen most, a fenced block. Its label alone says whether the block is
carried out, so that text which the model quotes never is. Pure: text in, blocks out.
"""

from __future__ import annotations

import re
from typing import Literal

from ollm.domain.struct import Data

BlockKind = Literal["run", "write", "call", "shown"]
FILE_BLOCK = "file_block"  # Such a call becomes write_file or edit_file once its file was read.
CUT_OFF = "The block was cut off before its end: nothing was done. Write less at once."
REPEATED = "The block repeated itself and was stopped before its end: nothing was done."

SHELL_LABELS = ("bash", "sh", "shell", "zsh", "console")  # Shown blocks with these labels are commands.
PAGES = (".md", ".mdx", ".rst")  # Such files contain blocks themselves.
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_LABEL = re.compile(r"(?:(?P<run>run)|(?P<kind>write|call)[ \t]+[\"']?(?P<name>[^\"'\s][^\"']*?)[\"']?)[ \t]*")
_HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_FENCE_START = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_THOUGHT = re.compile(r"[ \t]*<(think(?:ing)?)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"(?<![`\"'])</think(?:ing)?>(?![`\"'])", re.IGNORECASE)


class Block(Data, frozen=True):
    """A fenced block. `name` is its file, its tool, or the label of a shown one. `end` is the start of the text after
    it; `closed` is False if the answer stopped early."""

    kind: BlockKind
    name: str
    body: str
    start: int
    end: int
    closed: bool = True


def read_blocks(text: str, *, partial: bool = False) -> list[Block]:
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
        kind, name = _read_label(opening)
        last, closed = _find_end(lines, number, opening, kind, name, partial=partial)
        body = _remove_indent("".join(lines[number + 1 : last]).replace("\r\n", "\n"), len(opening["indent"]))
        end = place + sum(map(len, lines[number : last + closed]))
        body = clean_command(body) if kind == "run" else body
        if kind == "run" and not body.strip() and (closed or not partial):  # An empty block is no command.
            kind, name = "shown", "run"
        blocks.append(Block(kind=kind, name=name, body=body, start=place, end=end, closed=closed))
        number, place = last + closed, end
    return blocks


def _read_label(opening: re.Match[str]) -> tuple[BlockKind, str]:
    found = _LABEL.fullmatch(opening["info"]) if opening["mark"][0] == "`" else None
    if found is None:
        return "shown", opening["info"].strip()
    if found["run"]:
        return "run", ""
    return ("write" if found["kind"] == "write" else "call"), found["name"].replace("\\", "/").removeprefix("./")


def find_steps(text: str, *, partial: bool = False) -> tuple[list[Block], int]:
    """Return the blocks that are calls, and where the text after them begins: any number of files, then at most one
    command or tool. Text after those was written without their result."""
    steps: list[Block] = []
    for block in read_blocks(text, partial=partial):
        if block.kind == "shown":
            if steps:
                break
            continue
        steps.append(block)
        if block.kind != "write":
            break
    return steps, steps[-1].end if steps else len(text)


def find_thought_end(text: str) -> int:
    """Find the end of a thought whose opening tag was in the prompt, or 0. A file may hold both tags."""
    for end in reversed([found.end() for found in _THOUGHT_END.finditer(text)]):
        bodies = [text[block.start : end] for block in read_blocks(text) if block.start < end <= block.end]
        if not any("<think" in body for body in bodies):
            return end
    return 0


def _find_end(
    lines: list[str], opened: int, opening: re.Match[str], kind: BlockKind, name: str, *, partial: bool
) -> tuple[int, bool]:
    """Return the line that closes the block, and whether there is one. Shown text and pages may hold blocks, none of
    which acts, and so may the text that a command writes."""
    mark, depth = opening["mark"], 1
    is_page = kind == "write" and name.endswith(PAGES)
    number = opened
    while (number := number + 1) < len(lines):
        if kind == "run" and (begins := _HEREDOC.search(lines[number])):
            ends = (place for place in range(number + 1, len(lines)) if lines[place].strip() == begins[2])
            if end := next(ends, len(lines) if partial else 0):
                number = end
                continue
        found = _FENCE.match(lines[number].rstrip("\r\n"))
        if found is None or found["mark"][0] != mark[0] or len(found["mark"]) < len(mark):
            continue
        if found["info"].strip() or (is_page and depth == 1 and _opens_inner(lines, number)):
            depth += is_page or kind == "shown"
            continue
        depth -= 1
        if depth <= 0:
            return number, True
    return len(lines), False


def _opens_inner(lines: list[str], number: int) -> bool:
    """Return True if a bare fence in a page opens a block in it: text follows at once, and then two more fences."""
    follows = lines[number + 1].strip() if number + 1 < len(lines) else ""
    if not follows or follows.startswith("#"):
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


def clean_command(body: str) -> str:
    """Remove terminal prompts from a command. If there are prompts, the other lines are output."""
    lines = body.strip("\n").splitlines()
    prompted = [line.lstrip()[2:] for line in lines if line.lstrip().startswith("$ ")]
    return "\n".join(prompted) if prompted else body.strip("\n")


class BlockStreamParser:
    """Takes the text of one answer as it streams, and returns the text to show to the user."""

    def __init__(self) -> None:
        self.steps: list[Block] = []
        self.cut = ""  # The model wrote this after the steps.
        self.thought = ""
        self.begins_in_thought = False  # Set if the opening tag is in the prompt.
        self._text = ""
        self._decided = 0  # Every line up to here was checked.
        self._released = 0
        self._is_open = False  # Set inside a block that acts.
        self._is_fenced = False  # Set inside any block.

    @property
    def is_over(self) -> bool:
        """True after a call of a command or tool: any later text is invented."""
        return bool(self.steps) and self.steps[-1].kind != "write" and self.steps[-1].closed

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
        """Finish the answer. Held text is a step, or plain text after all. Nothing in a thought is a step, also if only
        its end was written."""
        self._take_thought(final=True)
        begin = find_thought_end(self._text)
        self.begins_in_thought = begin > 0
        self.thought += self._release(begin)
        self._text, self._released = self._text[begin:], self._released - begin
        self.steps, end = find_steps(self._text)
        self.cut = self._text[end:]
        return self._release(self.steps[0].start if self.steps else len(self._text))

    def _take_thought(self, *, final: bool = False) -> bool:
        """Remove a thought that begins here: nothing in it is a step. Return True while its end is missing."""
        opening = None if self._is_fenced else _THOUGHT.match(self._text, self._decided)
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
        blocks = read_blocks(self._text[: self._decided], partial=True)
        self._is_fenced = bool(blocks) and not blocks[-1].closed
        self._is_open = self._is_fenced and blocks[-1].kind != "shown"
        self.steps, _ = find_steps(self._text[: self._decided], partial=True)

    def _find_free_end(self) -> int:
        """Find the end of text that cannot be part of a step: not inside a block, nor a line that may open one."""
        if self.steps or self._is_open:
            return self._released
        last = self._text[self._decided :].lstrip(" \t")
        return self._decided if not last or last[0] in "`~<" else len(self._text)

    def _release(self, end: int) -> str:
        text = self._text[self._released : end] if end > self._released else ""
        self._released = max(end, self._released)
        return text
