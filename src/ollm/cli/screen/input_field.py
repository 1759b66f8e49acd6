"""The input line: completions, history, and the file passed to an editor."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from ollm.cli.screen.chat_session import ConversationRunner
from ollm.cli.screen.questions import ConfirmationQueue
from ollm.cli.screen.themes import ScreenOptions
from ollm.system.atomic import read_small_file
from ollm.system.paths import show_name

MAX_COMPLETIONS = 12


class ChatCompleter(Completer):
    """Completer. `commands` are (name, help) pairs; `find` returns the files that match the text after `@`."""

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
        for name, about in self._commands():
            if name.startswith(typed):
                yield Completion(name, start_position=-len(typed), display=f"/{name}", display_meta=about)


def _quote_path(path: str) -> str:
    shown = show_name(path)
    return f'"{shown}"' if any(letter in shown for letter in " @") else shown


def _starts_word(before: str, word: str) -> bool:
    at = len(before) - len(word) - 1
    return at == 0 or before[at - 1] in " \n\t("


MAX_HISTORY_LINES = 2_000
MAX_INPUT_CHARACTERS = 20_000


class ScreenInputHistory(History):
    """History that appends each input. A file that cannot be written is ignored."""

    def __init__(self, file: Path, session: Callable[[], str | None]) -> None:
        super().__init__()
        self._file = file
        self._session = session

    def load_history_strings(self) -> Iterable[str]:
        """Load inputs newest first, as the toolkit expects."""
        try:
            lines = read_small_file(self._file).splitlines()[-MAX_HISTORY_LINES:]
        except OSError:
            return []
        return [text for line in reversed(lines) if (text := _parse_text(line))]

    def store_string(self, string: str) -> None:
        line = json.dumps({"text": string[:MAX_INPUT_CHARACTERS], "session": self._session()}) + "\n"
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(line.encode("utf-8", "surrogatepass"))
        except OSError:
            return


def _parse_text(line: bytes) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    text = found.get("text") if isinstance(found, dict) else None
    return text if isinstance(text, str) else ""


def build_input(
    options: ScreenOptions,
    runner: ConversationRunner,
    questions: ConfirmationQueue,
    find_files: Callable[[str], list[str]],
) -> Buffer:
    def get_session() -> str | None:
        return runner.conversation.session_id if runner.conversation else None

    def note_typing() -> None:
        questions.note_typing()
        if runner.conversation:
            runner.conversation.note_typing()

    def list_commands() -> list[tuple[str, str]]:
        return list(runner.commands.items())

    def find_mentions(typed: str) -> list[str]:
        resources = [name for name in runner.resources if typed and name.startswith(typed)]
        return resources if ":" in typed and resources else [*resources[:3], *find_files(typed)]

    return Buffer(
        completer=ThreadedCompleter(ChatCompleter(list_commands, find_mentions)),
        complete_while_typing=True,
        multiline=True,
        history=ScreenInputHistory(options.history, get_session),
        tempfile_suffix=".md",
        on_text_changed=lambda _: note_typing(),
    )
