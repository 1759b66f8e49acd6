"""Key bindings. Enter sends, Alt-Enter or a trailing backslash goes on; Esc and Ctrl-C stop the model."""

from __future__ import annotations

import time
from typing import Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, Filter, has_completions, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ollm.cli.screen.questions import ALL_EDITS_KEY, KEY_SCOPES

TYPE_AHEAD_SECONDS = (
    0.5  # after the first letter: nobody makes a new line so soon, but Enter may have been pressed early
)


class KeyActions(Protocol):
    """Actions of the screen that keys trigger."""

    buffer: Buffer

    @property
    def busy(self) -> bool: ...

    @property
    def asking(self) -> bool: ...

    @property
    def refusing(self) -> bool: ...

    @property
    def choosing(self) -> bool: ...

    @property
    def vi(self) -> bool: ...

    @property
    def can_take_back(self) -> bool: ...

    def submit(self, text: str) -> None: ...

    def answer(self, key: str) -> None: ...

    def take_held_answer(self) -> bool: ...

    def type_at_question(self, text: str) -> None: ...

    def refuse(self, yes: bool) -> None: ...

    def stop(self) -> None: ...

    def leave(self) -> None: ...

    def take_back_queued(self) -> None: ...

    def show_hint(self, text: str, seconds: float) -> None: ...

    def cycle_approval(self) -> None: ...

    def fold_paste(self, text: str) -> str: ...

    def find_chip(self) -> str: ...

    def rewind(self) -> None: ...

    def move(self, steps: int) -> None: ...

    def choose(self, yes: bool) -> None: ...

    def type_at_list(self, text: str) -> bool: ...

    def unfold(self) -> None: ...

    def attach_offer(self) -> None: ...


class KeyFilters:
    """When which keys count."""

    def __init__(self, actions: KeyActions) -> None:
        self.asking: Filter = Condition(lambda: actions.asking)
        self.choosing: Filter = Condition(lambda: actions.choosing)
        self.vi: Filter = Condition(lambda: actions.vi)
        self.here: Filter = has_focus(actions.buffer)
        self.typing: Filter = self.here & ~self.asking & ~self.choosing
        self.typed_ahead: Filter = Condition(self._is_typed_ahead)
        self._first_letter_at: float | None = None
        actions.buffer.on_text_insert += self._note_first_letter
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


def build_key_bindings(actions: KeyActions) -> KeyBindings:
    keys = KeyBindings()
    filters = KeyFilters(actions)
    add_input_keys(keys, actions, filters)
    add_answer_keys(keys, actions, filters)
    add_choice_keys(keys, actions, filters)
    add_stop_keys(keys, actions, filters)
    add_other_keys(keys, actions, filters)
    return keys


def add_input_keys(keys: KeyBindings, actions: KeyActions, filters: KeyFilters) -> None:
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
        buffer.reset(append_to_history=bool(text.strip()) and not text.startswith(" ") and not actions.refusing)
        actions.submit(text)

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
        event.current_buffer.insert_text(actions.fold_paste(text))

    @keys.add("backspace", filter=filters.typing & Condition(lambda: bool(actions.find_chip())))
    @keys.add("c-w", filter=filters.typing & Condition(lambda: bool(actions.find_chip())))
    def _take_chip(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(actions.find_chip()))

    @keys.add("c-x", "c-e", filter=filters.typing)
    @keys.add("c-g", filter=filters.typing)
    def _open_editor(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()


def read_paste(event: KeyPressEvent) -> str:
    """Pasted text with normalised line endings."""
    return event.data.replace("\r\n", "\n").replace("\r", "\n")


def add_answer_keys(keys: KeyBindings, actions: KeyActions, filters: KeyFilters) -> None:
    """A key of the question answers it, unless a word follows: words go to the input line."""

    @keys.add(Keys.Any, filter=filters.asking)
    def _type(event: KeyPressEvent) -> None:
        if len(event.data) == 1 and event.data.isprintable():
            actions.type_at_question(event.data)

    @keys.add(Keys.BracketedPaste, filter=filters.asking)
    def _paste(event: KeyPressEvent) -> None:
        actions.type_at_question(actions.fold_paste(read_paste(event)))

    @keys.add("enter", filter=filters.asking)
    def _confirm(event: KeyPressEvent) -> None:
        if not actions.take_held_answer() and (text := event.current_buffer.text).strip():
            event.current_buffer.reset(append_to_history=not text.startswith(" "))
            actions.submit(text)

    @keys.add("backspace", filter=filters.asking)
    def _delete(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(actions.find_chip()) or 1)

    for key in (*KEY_SCOPES, ALL_EDITS_KEY):

        @keys.add(key, filter=filters.asking)
        def _answer(event: KeyPressEvent) -> None:
            actions.answer(event.data)

    @keys.add("n", filter=filters.asking)
    def _refuse(_event: KeyPressEvent) -> None:
        actions.refuse(True)


def add_choice_keys(keys: KeyBindings, actions: KeyActions, filters: KeyFilters) -> None:
    @keys.add(Keys.Any, filter=filters.choosing)
    def _type(event: KeyPressEvent) -> None:
        """A list waits for its own keys, unless it makes way for what is typed."""
        actions.type_at_list(event.data)

    @keys.add(Keys.BracketedPaste, filter=filters.choosing)
    def _paste(event: KeyPressEvent) -> None:
        actions.type_at_list(actions.fold_paste(read_paste(event)))

    @keys.add("c-d", filter=filters.choosing)
    def _leave(_event: KeyPressEvent) -> None:
        if actions.type_at_list("\x04"):
            actions.leave()

    for key, steps in (("up", -1), ("down", 1), ("c-p", -1), ("c-n", 1), ("k", -1), ("j", 1)):

        @keys.add(key, filter=filters.choosing)
        def _move(event: KeyPressEvent, steps: int = steps) -> None:
            if event.data not in "jk" or not actions.type_at_list(event.data):
                actions.move(steps)

    @keys.add("enter", filter=filters.choosing)
    def _choose(_event: KeyPressEvent) -> None:
        actions.choose(True)

    @keys.add("escape", filter=filters.choosing)
    @keys.add("c-c", filter=filters.choosing)
    def _keep(_event: KeyPressEvent) -> None:
        actions.choose(False)


def add_stop_keys(keys: KeyBindings, actions: KeyActions, filters: KeyFilters) -> None:
    empty = Condition(lambda: not actions.buffer.text)
    stops = Condition(lambda: actions.busy and not get_app().key_processor.input_queue)  # else it is Alt with a key

    @keys.add("escape", filter=filters.here & ~filters.choosing & (~filters.vi | filters.asking), eager=stops)
    def _escape(event: KeyPressEvent) -> None:
        if actions.refusing:
            actions.refuse(False)
        elif event.current_buffer.complete_state:
            event.current_buffer.cancel_completion()
        elif actions.busy:
            actions.stop()
        elif not event.current_buffer.text and filters.is_double_press(event, "escape"):
            actions.rewind()

    @keys.add("c-c", filter=filters.here & ~filters.choosing)
    def _interrupt_turn(event: KeyPressEvent) -> None:
        if actions.busy:
            actions.stop()
        elif event.current_buffer.text:
            event.current_buffer.reset()
        elif filters.is_double_press(event, "c-c"):
            actions.leave()
        else:
            actions.show_hint("Press Ctrl-C again to quit", 1.0)

    @keys.add("c-d", filter=empty & filters.typing)
    def _leave(_event: KeyPressEvent) -> None:
        actions.leave()


def add_other_keys(keys: KeyBindings, actions: KeyActions, filters: KeyFilters) -> None:
    @keys.add("tab", filter=filters.typing & has_completions)
    def _complete(event: KeyPressEvent) -> None:
        event.current_buffer.complete_next()

    @keys.add("up", filter=filters.typing & Condition(lambda: actions.can_take_back))
    def _take_back(_event: KeyPressEvent) -> None:
        actions.take_back_queued()

    @keys.add("c-o", filter=filters.here)
    def _unfold_calls(_event: KeyPressEvent) -> None:
        actions.unfold()

    @keys.add("s-tab", filter=filters.typing)
    def _cycle(_event: KeyPressEvent) -> None:
        actions.cycle_approval()

    @keys.add("c-z", filter=filters.here)
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("escape", "a", filter=filters.typing)
    def _attach(_event: KeyPressEvent) -> None:
        actions.attach_offer()
