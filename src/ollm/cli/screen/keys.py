"""What the keys do. Enter sends, Alt-Enter or a trailing backslash goes on; Esc and Ctrl-C stop the model."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys


class Actions(Protocol):
    """What the screen can do, as the keys see it."""

    @property
    def busy(self) -> bool: ...

    @property
    def asking(self) -> bool: ...

    @property
    def vi(self) -> bool: ...

    def submit(self, text: str) -> None: ...

    def answer(self, key: str) -> None: ...

    def refuse(self) -> None: ...

    def stop(self) -> None: ...

    def leave(self) -> None: ...

    def paste(self, text: str) -> str: ...

    def rewind(self) -> None: ...

    def unfold(self) -> None: ...

    def attach_offer(self) -> None: ...


def bindings(actions: Actions) -> KeyBindings:
    keys = KeyBindings()
    presses = Presses()
    asking = Condition(lambda: actions.asking)
    add_input(keys, actions, asking)
    add_answers(keys, actions, asking)
    add_stops(keys, actions, asking, presses)
    add_others(keys, actions)
    return keys


class Presses:
    """Knows a key that is pressed twice within a second."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def twice(self, event: KeyPressEvent, key: str) -> bool:
        now = event.app.loop.time() if event.app.loop else 0.0
        again = now - self._last.get(key, -10.0) < 1.0
        self._last[key] = -10.0 if again else now
        return again


def add_input(keys: KeyBindings, actions: Actions, asking: Condition) -> None:
    @keys.add("enter", filter=~asking)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text
        buffer.reset(append_to_history=bool(text.strip()) and not text.startswith(" "))
        actions.submit(text)

    @keys.add("escape", "enter")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=~asking)
    def _paste(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(actions.paste(text))

    @keys.add("c-x", "c-e")
    def _editor(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()


def add_answers(keys: KeyBindings, actions: Actions, asking: Condition) -> None:
    for key in ("y", "s", "a"):

        @keys.add(key, filter=asking)
        def _answer(event: KeyPressEvent) -> None:
            actions.answer(event.data)

    @keys.add("n", filter=asking)
    def _refuse(_event: KeyPressEvent) -> None:
        actions.refuse()

    @keys.add(Keys.Any, filter=asking)
    @keys.add("enter", filter=asking)
    def _nothing(_event: KeyPressEvent) -> None:
        """A question waits for its own keys."""


def add_stops(keys: KeyBindings, actions: Actions, asking: Condition, presses: Presses) -> None:
    vi = Condition(lambda: actions.vi)
    empty = Condition(lambda: not get_app().current_buffer.text)

    @keys.add("escape", filter=~vi)
    def _escape(event: KeyPressEvent) -> None:
        if actions.busy:
            actions.stop()
        elif not event.current_buffer.text and presses.twice(event, "escape"):
            actions.rewind()

    @keys.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        if actions.busy:
            actions.stop()
        elif event.current_buffer.text:
            event.current_buffer.reset()
        elif presses.twice(event, "c-c"):
            actions.leave()

    @keys.add("c-d", filter=empty & ~asking)
    def _leave(_event: KeyPressEvent) -> None:
        actions.leave()


def add_others(keys: KeyBindings, actions: Actions) -> None:
    @keys.add("c-o")
    def _unfold(_event: KeyPressEvent) -> None:
        actions.unfold()

    @keys.add("escape", "a")
    def _attach(_event: KeyPressEvent) -> None:
        actions.attach_offer()
