"""Several files on one page (T2.8): a header each, as many as there is room for, and what was left out."""

from __future__ import annotations

from ollm.config.settings import OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.services.token_counting import estimate_units
from ollm.tools.files.file_text import NOTE_CHARS
from ollm.tools.framework.output import take_head

MIN_PAGE_CHARS = 200
MIN_PAGE_TOKENS = 10
CHARS_PER_TOKEN = 4
FAIR_PAGE_CHARS = 2_000


class FilePages:
    """The files read so far, and the room that is left for more."""

    def __init__(self, max_tokens: int | None, limits: OutputSettings) -> None:
        self.texts: list[str] = []
        self.failures: list[ToolFailure] = []
        self.read = 0
        self._tokens = None if max_tokens is None else float(min(max_tokens, limits.max_chars))
        self._chars = limits.max_chars - NOTE_CHARS
        self._lines = limits.max_lines - 5

    @property
    def full(self) -> bool:
        tight = self._tokens is not None and self._tokens < MIN_PAGE_TOKENS
        return bool(self.texts) and (self._chars < MIN_PAGE_CHARS or self._lines < 5 or tight)

    def limit_next(self, files_left: int) -> OutputSettings:
        """What the next file may take: half of the room while others wait, so that one long file is not all."""
        chars = self._chars if self._tokens is None else min(self._chars, int(CHARS_PER_TOKEN * self._tokens))
        if files_left > 1:
            chars = max(chars // 2, min(chars, FAIR_PAGE_CHARS))
        return OutputSettings(max_chars=max(chars, 1) + NOTE_CHARS, max_lines=max(self._lines, 1))

    def add(self, path: str, page: str | ToolFailure) -> None:
        """A file's text, or why it could not be read."""
        if isinstance(page, ToolFailure):
            self.failures.append(page)
            text = f"=== {path} ===\n[{page.kind}: {page.message}]"
        else:
            self.read += 1
            text = self._trim_to_tokens(f"=== {path} ===\n{page.removesuffix(chr(10))}")
        self.texts.append(text)
        self._chars -= len(text) + 1
        self._lines -= text.count("\n") + 1
        if self._tokens is not None:
            self._tokens -= estimate_units(text)

    def describe_left_out(self, paths: list[str]) -> list[str]:
        """The files there was no room for."""
        rest = paths[len(self.texts) :]
        if not rest:
            return []
        named = ", ".join(rest[:10]) + (" …" if len(rest) > 10 else "")
        return [f"{len(rest)} more {'file' if len(rest) == 1 else 'files'} not shown (too long): {named}"]

    def _trim_to_tokens(self, text: str) -> str:
        whole = text
        while self._tokens is not None and (needed := estimate_units(text)) > max(self._tokens, MIN_PAGE_TOKENS):
            text = take_head(text, int(len(text) * 0.9 * self._tokens / needed), len(text))
        return text if text is whole else f"{text.removesuffix(chr(10))}\n[cut: maxTokens]"
