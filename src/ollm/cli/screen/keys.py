"""Key bindings. Enter sends, Alt-Enter or a trailing backslash goes on; Esc and Ctrl-C stop the model."""

from __future__ import annotations

import time

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, Filter, has_completions, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ollm.cli.screen.questions import ANSWER_KEYS
from ollm.cli.screen.screen import ChatScreen

TYPE_AHEAD_SECONDS = (
    0.5  # after the first letter: nobody makes a new line so soon, but Enter may have been pressed early
)


class KeyFilters:
    """When which keys count."""

    def __init__(self, screen: ChatScreen) -> None:
        self.asking: Filter = Condition(lambda: screen.questions.armed)
        self.choosing: Filter = Condition(lambda: screen.choosing)
        self.vi: Filter = Condition(lambda: screen.options.vi)
        self.here: Filter = has_focus(screen.buffer)
        self.typing: Filter = self.here & ~self.asking & ~self.choosing
        self.typed_ahead: Filter = Condition(self._is_typed_ahead)
        self._first_letter_at: float | None = None
        screen.buffer.on_text_insert += self._note_first_letter
        self._last: dict[str, float] = {}

    def _note_first_letter(self, _: Buffer) -> None:
        self._first_letter_at = self._first_letter_at or time.monotonic()

    def _is_typed_ahead(self) -> bool:
        return self._first_letter_at is None or time.monotonic() - self._first_letter_at < TYPE_AHEAD_SECONDS

    def is_double_press(self, event: KeyPressEvent, key: str) -> bool:
        """True if a key is pressed twice within a second."""
        now = event.app.loop.time() if event.app.loop else 0.0
        again = now - self._last.get(key, -10.0) < 1.0
        self._last[key] = -10.0 if again else now
        return again


def build_key_bindings(screen: ChatScreen) -> KeyBindings:
    keys = KeyBindings()
    filters = KeyFilters(screen)
    add_input_keys(keys, screen, filters)
    add_answer_keys(keys, screen, filters)
    add_choice_keys(keys, screen, filters)
    add_stop_keys(keys, screen, filters)
    add_other_keys(keys, screen, filters)
    return keys


def add_input_keys(keys: KeyBindings, screen: ChatScreen, filters: KeyFilters) -> None:
    @keys.add("enter", filter=filters.typing)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text
        buffer.reset(append_to_history=bool(text.strip()) and not text.startswith(" ") and not screen.questions.typing)
        screen.submit(text)

    @keys.add("c-j", filter=filters.typing & filters.typed_ahead)
    def _send_ahead(event: KeyPressEvent) -> None:
        """Enter, pressed before the terminal was ours, comes as Ctrl-J."""
        _send(event)

    @keys.add("escape", "enter", filter=filters.typing)
    @keys.add("c-j", filter=filters.typing & ~filters.typed_ahead)
    def _insert_newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=filters.typing)
    def _paste(event: KeyPressEvent) -> None:
        text = read_paste(event)
        event.current_buffer.insert_text(screen.pastes.fold(text))

    @keys.add("backspace", filter=filters.typing & Condition(lambda: bool(screen.find_chip())))
    @keys.add("c-w", filter=filters.typing & Condition(lambda: bool(screen.find_chip())))
    def _take_chip(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(screen.find_chip()))

    @keys.add("c-x", "c-e", filter=filters.typing)
    @keys.add("c-g", filter=filters.typing)
    def _open_editor(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()


def read_paste(event: KeyPressEvent) -> str:
    """Pasted text with normalised line endings."""
    return event.data.replace("\r\n", "\n").replace("\r", "\n")


def add_answer_keys(keys: KeyBindings, screen: ChatScreen, filters: KeyFilters) -> None:
    """A key of the question answers it, unless a word follows: words go to the input line."""

    @keys.add(Keys.Any, filter=filters.asking)
    def _press(event: KeyPressEvent) -> None:
        if len(event.data) == 1 and event.data.isprintable():
            screen.answers.press(event.data)

    for key in ANSWER_KEYS:  # by name, since in vi mode they have other meanings
        keys.add(key, filter=filters.asking)(_press)

    for key, steps in (("up", -1), ("down", 1), ("c-p", -1), ("c-n", 1)):

        @keys.add(key, filter=filters.asking)
        def _move(_event: KeyPressEvent, steps: int = steps) -> None:
            screen.questions.move(steps)

    @keys.add(Keys.BracketedPaste, filter=filters.asking)
    def _paste(event: KeyPressEvent) -> None:
        screen.answers.type_instead(screen.pastes.fold(read_paste(event)))

    @keys.add("enter", filter=filters.asking)
    def _confirm(event: KeyPressEvent) -> None:
        if not screen.answers.take_selected():
            text = event.current_buffer.text
            event.current_buffer.reset(append_to_history=not text.startswith(" "))
            screen.submit(text)

    @keys.add("backspace", filter=filters.asking)
    def _delete(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(screen.find_chip()) or 1)


def add_choice_keys(keys: KeyBindings, screen: ChatScreen, filters: KeyFilters) -> None:
    @keys.add(Keys.Any, filter=filters.choosing)
    def _type(event: KeyPressEvent) -> None:
        """A list waits for its own keys, unless it makes way for what is typed."""
        screen.dialog.type(event.data)

    @keys.add(Keys.BracketedPaste, filter=filters.choosing)
    def _paste(event: KeyPressEvent) -> None:
        screen.dialog.type(screen.pastes.fold(read_paste(event)))

    @keys.add("c-d", filter=filters.choosing)
    def _leave(_event: KeyPressEvent) -> None:
        if screen.dialog.type("\x04"):
            screen.leave()

    for key, steps in (("up", -1), ("down", 1), ("c-p", -1), ("c-n", 1), ("k", -1), ("j", 1)):

        @keys.add(key, filter=filters.choosing)
        def _move(event: KeyPressEvent, steps: int = steps) -> None:
            if event.data not in "jk" or not screen.dialog.type(event.data):
                screen.dialog.move(steps)

    @keys.add("enter", filter=filters.choosing)
    def _choose(_event: KeyPressEvent) -> None:
        screen.dialog.choose(True)

    @keys.add("escape", filter=filters.choosing)
    @keys.add("c-c", filter=filters.choosing)
    def _keep(_event: KeyPressEvent) -> None:
        screen.dialog.choose(False)


def add_stop_keys(keys: KeyBindings, screen: ChatScreen, filters: KeyFilters) -> None:
    empty = Condition(lambda: not screen.buffer.text)
    stops = Condition(lambda: screen.chat.busy and not get_app().key_processor.input_queue)  # else it is Alt with a key

    @keys.add("escape", filter=filters.here & ~filters.choosing & (~filters.vi | filters.asking), eager=stops)
    def _escape(event: KeyPressEvent) -> None:
        if screen.questions.typing:
            screen.answers.cancel_typing()
        elif event.current_buffer.complete_state:
            event.current_buffer.cancel_completion()
        elif screen.chat.busy:
            screen.stop()
        elif not event.current_buffer.text and filters.is_double_press(event, "escape"):
            screen.rewind()

    @keys.add("c-c", filter=filters.here & ~filters.choosing)
    def _interrupt_turn(event: KeyPressEvent) -> None:
        if screen.chat.busy:
            screen.stop()
        elif event.current_buffer.text:
            event.current_buffer.reset()
        elif filters.is_double_press(event, "c-c"):
            screen.leave()
        else:
            screen.show_hint("Press Ctrl-C again to quit", 1.0)

    @keys.add("c-d", filter=empty & filters.typing)
    def _leave(_event: KeyPressEvent) -> None:
        screen.leave()


def add_other_keys(keys: KeyBindings, screen: ChatScreen, filters: KeyFilters) -> None:
    @keys.add("tab", filter=filters.typing & has_completions)
    def _complete(event: KeyPressEvent) -> None:
        event.current_buffer.complete_next()

    @keys.add("up", filter=filters.typing & Condition(lambda: screen.can_take_back))
    def _take_back(_event: KeyPressEvent) -> None:
        screen.take_back_queued()

    @keys.add("c-o", filter=filters.here)
    def _unfold_calls(_event: KeyPressEvent) -> None:
        screen.unfold()

    @keys.add("s-tab", filter=filters.typing)
    def _cycle(_event: KeyPressEvent) -> None:
        screen.cycle_approval()

    @keys.add("c-z", filter=filters.here)
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("escape", "a", filter=filters.typing)
    def _detach(_event: KeyPressEvent) -> None:
        screen.chat.detach_last()
