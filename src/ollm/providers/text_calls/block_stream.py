"""A streamed answer in blocks: words go out as they come, a block that is a call is held, what follows it is cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from ollm.providers.text_calls.blocks import HEREDOC, SHELLS, Block, find_heredoc_end, find_steps, looks_like_path

MAX_INNER_FENCES = 12  # in a text whose end has not come; then it is taken for forgotten
_FENCE_START = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_MAY_BE_NAME = re.compile(r"^[\s`~*#\d.)]*(?:[Ff]ile(?:name)?:?\s*)?[\w./@+`*:-]*\s*$")


class BlockStreamParser:
    """Takes the text of one answer as it comes, gives back what a person may see. `known` are files that exist;
    `quoting`: blocks are part of an explanation; `is_meant`: whether a block that could be a step is one."""

    def __init__(
        self,
        tools: Collection[str],
        known: Collection[str] = (),
        *,
        quoting: bool = False,
        is_meant: Callable[[Block], bool] = lambda _: True,
    ) -> None:
        self.steps: list[Block] = []
        self.cut = ""  # what was written behind the steps
        self.shown = ""
        self._quoting = quoting
        self._is_meant = is_meant
        self._tools = tools
        self._known = known
        self._text = ""
        self._decided = 0  # up to here every line was looked at
        self._released = 0
        self._fence = ""  # what closes the block that is open
        self._opened = self._inner_fences = 0  # where it begins, and fences in the text that its command writes

    @property
    def is_over(self) -> bool:
        """A command or a tool was called: whatever comes now is made up."""
        return bool(self.steps) and self.steps[-1].kind != "file"

    @property
    def is_held(self) -> bool:
        """Whether something is kept from the screen at this moment."""
        return bool(self._fence)

    def feed(self, text: str) -> str:
        self._text += text
        if self._quoting:
            return self._release(len(self._text))
        while (end := self._text.find("\n", self._decided)) >= 0:
            self._look_at_line(self._text[self._decided : end])
            self._decided = end + 1
            if self.is_over:
                return self._release(self._released)
        return self._release(self._find_free_end())

    def finish(self) -> str:
        """The answer is over: what is held is a step, or words after all."""
        if self._quoting:
            return ""
        self.steps, end = find_steps(self._text, self._tools, self._known, self._is_meant)
        self.cut = self._text[end:].strip()
        return self._release(self.steps[0].start if self.steps else len(self._text), final=True)

    def _look_at_line(self, line: str) -> None:
        fence = _FENCE_START.match(line)
        if not self._fence:
            self._fence = fence[1] if fence else ""
            self._opened, self._inner_fences = self._decided, 0
            return
        closes = fence is not None and line.strip().strip(self._fence[0]) == "" and len(fence[1]) >= len(self._fence)
        if closes and not self._writes_text():
            self._fence = ""
            end = self._decided + len(line) + 1
            self.steps, _ = find_steps(self._text[:end], self._tools, self._known, self._is_meant)

    def _writes_text(self) -> bool:
        """Whether a command is in the middle of a text that it writes: a fence may be part of that."""
        lines = self._text[self._opened : self._decided].splitlines()
        if lines[0].strip().strip("`~ ").lower() not in SHELLS or self._inner_fences > MAX_INNER_FENCES:
            return False
        number = 0
        while (number := number + 1) < len(lines):
            if HEREDOC.search(lines[number]):
                number = find_heredoc_end(lines, number) or len(lines)
        open_text = number > len(lines)
        self._inner_fences += open_text
        return open_text

    def _find_free_end(self) -> int:
        """Up to where the text cannot belong to a step: not inside a block, nor a line that may name its file."""
        if self.steps or self._fence:
            return self._released
        free = len(self._text)
        last = self._text[self._decided :]
        if not last or _MAY_BE_NAME.match(last):
            free = self._decided
            lines = self._text[self._released : free].splitlines(keepends=True)
            while lines and (not lines[-1].strip() or _MAY_BE_NAME.match(lines[-1])):
                free -= len(lines.pop())
        return max(free, self._released)

    def _release(self, end: int, *, final: bool = False) -> str:
        text = self._text[self._released : end] if end > self._released else ""
        if final and self.steps and (not self.shown or self.shown.endswith("\n") or "\n" in text.rstrip()):
            text = _drop_name_line(text, self._known)
        self._released = max(end, self._released)
        self.shown += text
        return text


def _drop_name_line(text: str, known: Collection[str]) -> str:
    """The words before a block without the line that only names its file."""
    lines = text.rstrip().splitlines()
    if lines and looks_like_path(lines[-1].strip("*#:` \t"), known):
        return "\n".join(lines[:-1])
    return text
