"""The input line: completions, also of the workspace's files, history, and the file passed to an editor."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from ollm.cli.screen.chat_session import ConversationRunner
from ollm.cli.screen.questions import ConfirmationQueue
from ollm.cli.screen.themes import ScreenOptions
from ollm.domain.errors import OllmError
from ollm.domain.files import DiscoveryOptions
from ollm.system.atomic import read_small_file
from ollm.system.paths import show_name

if TYPE_CHECKING:
    from ollm.services.file_discovery.fuzzy import NameFinder
    from ollm.services.file_discovery.service import FileDiscoveryService

MAX_COMPLETIONS = 12
FRESH_SECONDS = 1.0  # A list of files is reused for this long.
RELOAD_LOAD_FACTOR = 10  # A list that takes long to make is made less often.
TYPING_PAUSE_SECONDS = 0.025  # The typed letter is drawn before the search begins.
SWITCH_INTERVAL_SECONDS = 0.0005  # A search delays typing by at most this long.


class ChatCompleter(Completer):
    """Completer. `commands` are (name, help) pairs; `find` returns the files that match the text after `@`."""

    def __init__(self, commands: Callable[[], Sequence[tuple[str, str]]], find: Callable[[str], Sequence[str]]) -> None:
        self._commands = commands
        self._find = find

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            return [
                Completion(name, start_position=1 - len(before), display=f"/{name}", display_meta=about)
                for name, about in self._commands()
                if name.startswith(before[1:])
            ]
        word = before.rpartition("@")[2] if "@" in before else None
        if word is None or any(blank in word for blank in " \n\t") or not _starts_word(before, word):
            return []
        return [Completion(_quote_path(path), start_position=-len(word)) for path in self._find(word)[:MAX_COMPLETIONS]]


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

    def find_mentions(typed: str) -> list[str]:
        resources = [name for name in runner.resources if typed and name.startswith(typed)]
        return resources if ":" in typed and resources else [*resources[:3], *find_files(typed)]

    return Buffer(
        completer=ThreadedCompleter(ChatCompleter(lambda: list(runner.commands.items()), find_mentions)),
        complete_while_typing=True,
        multiline=True,
        history=ScreenInputHistory(options.history, get_session),
        tempfile_suffix=".md",
        on_text_changed=lambda _: note_typing(),
    )


class WorkspaceFiles:
    """Files of the workspace. Typing is never blocked: an old list is used while a new one loads."""

    def __init__(self, discovery: Callable[[], FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = root
        self._finder: NameFinder | None = None
        self._fresh_until = 0.0
        self._asked = ""
        self._lock = threading.Lock()
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)

    def find(self, typed: str) -> list[str]:
        """Find the best matches. The first call waits for the list. Returns [] if more was typed meanwhile."""
        self._asked = typed
        time.sleep(TYPING_PAUSE_SECONDS)
        if self._asked != typed:
            return []
        if self._finder is None:
            self._load()
        elif time.monotonic() > self._fresh_until:
            threading.Thread(target=self._load, daemon=True).start()
        return self._finder.find_best(typed) if self._finder else []

    def _load(self) -> None:
        from ollm.services.file_discovery.fuzzy import NameFinder

        if not self._lock.acquire(blocking=self._finder is None):
            return
        start = time.monotonic()
        try:
            paths = asyncio.run(self._discovery().find_paths(DiscoveryOptions(root=str(self._root)))).paths
            if self._finder is None or self._finder.paths != paths:
                self._finder = NameFinder(paths)
        except OllmError:
            return
        finally:
            now = time.monotonic()
            self._fresh_until = now + max(FRESH_SECONDS, RELOAD_LOAD_FACTOR * (now - start))
            self._lock.release()
