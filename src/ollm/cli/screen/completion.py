"""Completion: `/` commands with their help, `@` files of the workspace, fuzzily."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

MAX_COMPLETIONS = 12


class ChatCompleter(Completer):
    """`commands` are (name, help) pairs; `find` gives the files that fit what was typed after `@`."""

    def __init__(self, commands: Callable[[], Sequence[tuple[str, str]]], find: Callable[[str], Sequence[str]]) -> None:
        self._commands = commands
        self._find = find

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            return self._complete_commands(before[1:])
        word = before.rpartition("@")[2] if "@" in before else None
        if word is None or any(blank in word for blank in " \n\t") or not _starts_word(before, word):
            return []
        return [Completion(_quote_path(path), start_position=-len(word)) for path in self._find(word)[:MAX_COMPLETIONS]]

    def _complete_commands(self, typed: str) -> Iterable[Completion]:
        for name, told in self._commands():
            if name.startswith(typed):
                yield Completion(name, start_position=-len(typed), display=f"/{name}", display_meta=told)


def _quote_path(path: str) -> str:
    return f'"{path}"' if any(letter in path for letter in " \t@") else path


def _starts_word(before: str, word: str) -> bool:
    """Whether the @ begins a word: an address such as me@example.org is none."""
    at = len(before) - len(word) - 1
    return at == 0 or before[at - 1] in " \n\t("
