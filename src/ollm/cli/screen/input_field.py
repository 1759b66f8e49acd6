"""The input line: its completions, its history, and the file an editor gets."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter

from ollm.cli.screen.chat_session import ConversationRunner
from ollm.cli.screen.completion import ChatCompleter
from ollm.cli.screen.history import ScreenInputHistory
from ollm.cli.screen.questions import ConfirmationQueue
from ollm.cli.screen.screen_options import ScreenOptions


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
        return [(name, text) for name, (text, _) in runner.commands.items()]

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
