"""Key bindings. Enter sends; Alt-Enter or a trailing backslash continues; Esc and Ctrl-C stop the model."""

from __future__ import annotations

import time
from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, Filter, has_completions, has_focus, vi_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ollm.cli.screen.questions import ANSWER_KEYS
from ollm.cli.screen.screen import ChatScreen

TYPE_AHEAD_SECONDS = 0.5  # Nobody makes a new line so soon, but Enter may have been pressed early.


class KeyFilters:
    def __init__(self, screen: ChatScreen) -> None:
        self.asking: Filter = Condition(lambda: screen.questions.takes_keys)
        self.answering: Filter = self.asking & Condition(lambda: not screen.buffer.text)
        self.choosing: Filter = Condition(lambda: screen.dialog.list is not None)
        self.here: Filter = has_focus(screen.buffer)
        self.typing: Filter = self.here & ~self.answering & ~self.choosing
        self.typed_ahead: Filter = Condition(self._is_typed_ahead)
        self._screen = screen
        screen.buffer.on_text_insert += self._note_first_letter
        self._last: dict[str, float] = {}

    def _note_first_letter(self, _: Buffer) -> None:
        self._screen.first_letter_at = self._screen.first_letter_at or time.monotonic()

    def _is_typed_ahead(self) -> bool:
        began = self._screen.first_letter_at
        return began is None or time.monotonic() - began < TYPE_AHEAD_SECONDS

    def is_double_press(self, event: KeyPressEvent, key: str) -> bool:
        now = event.app.loop.time() if event.app.loop else 0.0
        again = now - self._last.get(key, -10.0) < 1.0
        self._last[key] = -10.0 if again else now
        return again


Binding = tuple[
    str, Filter, Callable[[KeyPressEvent], object]
]  # Keys (`,` means or, a space means then), their condition, and their action.


def build_key_bindings(screen: ChatScreen) -> KeyBindings:
    keys, filters = KeyBindings(), KeyFilters(screen)
    stops = Condition(lambda: screen.chat.busy and not get_app().key_processor.input_queue)  # With a key, Esc is Alt.
    for names, wanted, run in (
        *list_input_keys(screen, filters),
        *list_answer_keys(screen, filters),
        *list_choice_keys(screen, filters),
        *list_stop_keys(screen, filters),
    ):
        for name in names.split(","):
            keys.add(*name.split(), filter=wanted, eager=stops if names == "escape" else False)(run)
    return keys


def list_input_keys(screen: ChatScreen, filters: KeyFilters) -> list[Binding]:
    typing, on_chip = filters.typing, filters.typing & Condition(lambda: bool(screen.find_chip()))

    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text
        is_message = bool(text.strip()) and not text.startswith(" ") and not screen.questions.typing
        buffer.reset(append_to_history=is_message)
        screen.submit(text)

    return [
        ("enter", typing, send),
        ("c-j", typing & filters.typed_ahead, send),  # An Enter from before the screen's start arrives as Ctrl-J.
        ("c-j", typing & ~filters.typed_ahead, lambda event: event.current_buffer.insert_text("\n")),
        ("escape enter", typing, lambda event: event.current_buffer.insert_text("\n")),
        (Keys.BracketedPaste, typing, lambda event: event.current_buffer.insert_text(read_paste(event, screen))),
        ("backspace,c-w", on_chip, lambda event: event.current_buffer.delete_before_cursor(len(screen.find_chip()))),
        ("c-x c-e,c-g", typing, lambda event: event.current_buffer.open_in_editor()),
        ("tab", typing & has_completions, lambda event: event.current_buffer.complete_next()),
        ("?", typing & Condition(lambda: not screen.buffer.text), lambda _: screen.submit("/help keys")),
        ("up", typing & Condition(lambda: screen.can_take_back), lambda _: screen.take_back_queued()),
        ("s-tab", typing, lambda _: screen.cycle_approval()),
        ("escape a", typing, lambda _: screen.chat.detach_last()),
        ("escape r", typing, lambda _: screen.submit("/run")),
        ("c-o", filters.here, lambda _: screen.transcript.unfold()),
        ("c-z", filters.here, lambda event: event.app.suspend_to_background()),
    ]


def read_paste(event: KeyPressEvent, screen: ChatScreen) -> str:
    """Read pasted text with normalised line endings, folded if it is long."""
    return screen.pastes.fold(event.data.replace("\r\n", "\n").replace("\r", "\n"))


def list_answer_keys(screen: ChatScreen, filters: KeyFilters) -> list[Binding]:
    """List the keys that answer a question. Letters answer only on an empty input line. Bound after the input's keys,
    and so before them."""
    asking, answering = filters.asking, filters.answering

    def press(event: KeyPressEvent) -> None:
        if len(event.data) == 1 and event.data.isprintable():
            screen.questions.press(event.data)
        elif screen.questions.held_key:
            screen.questions.fold()

    def confirm(event: KeyPressEvent) -> None:
        if not screen.questions.take_selected():
            text = event.current_buffer.text
            event.current_buffer.reset(append_to_history=not text.startswith(" "))
            screen.submit(text)

    return [
        (",".join((Keys.Any, *ANSWER_KEYS)), answering, press),  # Vi mode gives these letters other meanings.
        ("backspace", answering, press),
        ("up,c-p", asking, lambda _: screen.questions.move(-1)),
        ("down,c-n", asking, lambda _: screen.questions.move(1)),
        ("left,s-tab", answering, lambda _: screen.questions.move(-1)),
        ("right,tab", answering, lambda _: screen.questions.move(1)),
        (Keys.BracketedPaste, asking, lambda event: screen.questions.type_instead(read_paste(event, screen))),
        ("enter", asking, confirm),
    ]


def list_choice_keys(screen: ChatScreen, filters: KeyFilters) -> list[Binding]:
    """List the keys of an open list. Other keys do nothing."""
    choosing, dialog = filters.choosing, screen.dialog
    return [
        (f"{Keys.Any.value},{Keys.BracketedPaste.value},c-d", choosing, lambda _: None),
        ("up,c-p,k", choosing, lambda _: dialog.move(-1)),
        ("down,c-n,j", choosing, lambda _: dialog.move(1)),
        ("enter", choosing, lambda _: dialog.choose(True)),
        ("escape,c-c", choosing, lambda _: dialog.choose(False)),
    ]


def list_stop_keys(screen: ChatScreen, filters: KeyFilters) -> list[Binding]:
    def escape(event: KeyPressEvent) -> None:
        if screen.questions.typing:
            screen.questions.cancel_typing()
        elif screen.questions.unfolded:
            screen.questions.fold()
        elif event.current_buffer.complete_state:
            event.current_buffer.cancel_completion()
        elif screen.chat.busy:
            screen.stop()
        elif not (screen.chat.conversation or event.current_buffer.text):
            screen.leave()
        elif not event.current_buffer.text and filters.is_double_press(event, "escape"):
            screen.spawn(screen.chat.run_safely(screen.chat.offer_messages()))

    def stop_or_leave(event: KeyPressEvent) -> None:
        if screen.chat.busy:
            screen.stop()
        elif event.current_buffer.text:
            event.current_buffer.reset()
        elif filters.is_double_press(event, "c-c"):
            screen.leave()
        else:
            screen.show_hint("Press Ctrl-C again to quit")

    empty = Condition(lambda: not screen.buffer.text)
    here = filters.here & ~filters.choosing
    return [
        ("escape", here & (~vi_mode | filters.asking), escape),
        ("c-c", here, stop_or_leave),
        ("c-d", empty & filters.typing, lambda _: screen.leave()),
    ]
