"""What the keys do, driven through the toolkit by bytes as a terminal sends them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import Completion, WordCompleter
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.output import DummyOutput

from ollm.cli.screen import keys
from ollm.cli.screen.keys import build_key_bindings

PATIENCE = 30.0


class Recorder:
    """Notes what the keys ask for; `chip` is the folded paste before the cursor."""

    def __init__(self) -> None:
        self.buffer = Buffer(multiline=True, completer=WordCompleter(["alpha", "alps"]))
        self.done: list[str] = []
        self.busy = self.asking = self.refusing = self.choosing = self.vi = self.can_take_back = False
        self.makes_way = False  # whether the list goes when something is typed
        self.chip = ""

    def submit(self, text: str) -> None:
        self.done.append(f"submit {text}")

    def answer(self, key: str) -> None:
        self.done.append(f"answer {key}")

    def take_held_answer(self) -> bool:
        self.done.append("take held")
        return False

    def type_at_question(self, text: str) -> None:
        self.done.append(f"words {text}")

    def refuse(self, yes: bool) -> None:
        self.done.append(f"refuse {yes}")

    def stop(self) -> None:
        self.done.append("stop")

    def leave(self) -> None:
        self.done.append("leave")

    def take_back_queued(self) -> None:
        self.done.append("take back")

    def show_hint(self, text: str, seconds: float) -> None:
        self.done.append(f"hint {text} {seconds}")

    def cycle_approval(self) -> None:
        self.done.append("cycle")

    def fold_paste(self, text: str) -> str:
        self.done.append(f"paste {text!r}")
        return "[chip]"

    def find_chip(self) -> str:
        return self.chip

    def type_at_list(self, text: str) -> bool:
        if self.makes_way:
            self.done.append(f"typed {text!r}")
        return self.makes_way

    def rewind(self) -> None:
        self.done.append("rewind")

    def move(self, steps: int) -> None:
        self.done.append(f"move {steps}")

    def choose(self, yes: bool) -> None:
        self.done.append(f"choose {yes}")

    def unfold(self) -> None:
        self.done.append("unfold")

    def attach_offer(self) -> None:
        self.done.append("attach")


class Keyboard:
    """Sends bytes as a terminal does, and waits until the keys they make have done what they do."""

    def __init__(self, actions: Recorder, app: Application[None], pipe: PipeInput) -> None:
        self.actions = actions
        self._app = app
        self._pipe = pipe
        self._pressed = 0
        app.key_processor.after_key_press += self._count

    def wait_for_keys(self, seconds: float) -> None:
        """How long a key waits for the next one that would make another of both."""
        self._app.timeoutlen = seconds

    def _count(self, _sender: object) -> None:
        self._pressed += 1

    async def type(self, *data: str) -> list[str]:
        """What was asked for by these keys."""
        self.actions.done.clear()
        for each in data:
            before = self._pressed
            self._pipe.send_text(each)
            async with asyncio.timeout(PATIENCE):
                while self._pressed == before or self._app.key_processor.key_buffer:
                    await asyncio.sleep(0.005)
        return list(self.actions.done)


@asynccontextmanager
async def keyboard(**state: bool) -> AsyncIterator[Keyboard]:
    actions = Recorder()
    for name, value in state.items():
        setattr(actions, name, value)
    with create_pipe_input() as pipe:
        app: Application[None] = Application(
            layout=Layout(Window(BufferControl(actions.buffer))),
            key_bindings=build_key_bindings(actions),
            input=pipe,
            output=DummyOutput(),
        )
        app.ttimeoutlen = app.timeoutlen = 0.01
        running = asyncio.ensure_future(app.run_async(handle_sigint=False))
        async with asyncio.timeout(PATIENCE):
            while not app.is_running:
                await asyncio.sleep(0)
        try:
            yield Keyboard(actions, app, pipe)
        finally:
            app.exit()
            await running


async def test_enter_sends_and_empties_the_input() -> None:
    async with keyboard() as board:
        assert await board.type("hi\r") == ["submit hi"]
        assert board.actions.buffer.text == ""


async def test_a_trailing_backslash_and_alt_enter_go_on_in_the_next_line() -> None:
    async with keyboard() as board:
        assert await board.type("one\\\r", "two", "\x1b\r", "three") == []
        assert board.actions.buffer.text == "one\ntwo\nthree"
        assert await board.type("\r") == ["submit one\ntwo\nthree"]


async def test_what_is_sent_is_kept_in_the_history_unless_it_begins_with_a_blank() -> None:
    async with keyboard() as board:
        await board.type("kept\r", " secret\r", "\r")

        assert board.actions.buffer.history.get_strings() == ["kept"]


async def test_ctrl_j_sends_what_was_typed_ahead_and_is_a_new_line_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "TYPE_AHEAD_SECONDS", 600.0)
    async with keyboard() as board:
        assert await board.type("early\n") == ["submit early"]
    monkeypatch.setattr(keys, "TYPE_AHEAD_SECONDS", -1.0)
    async with keyboard() as board:
        assert await board.type("a\nb") == []
        assert board.actions.buffer.text == "a\nb"


async def test_a_paste_has_plain_line_ends_and_is_folded() -> None:
    async with keyboard() as board:
        assert await board.type("\x1b[200~a\r\nb\rc\x1b[201~") == ["paste 'a\\nb\\nc'"]
        assert board.actions.buffer.text == "[chip]"


@pytest.mark.parametrize("key", ["\x7f", "\x17"])
async def test_one_key_takes_a_folded_paste_away(key: str) -> None:
    async with keyboard() as board:
        await board.type("see [chip]")
        board.actions.chip = "[chip]"
        await board.type(key)
        assert board.actions.buffer.text == "see "
        board.actions.chip = ""
        await board.type("xy\x7f")
        assert board.actions.buffer.text == "see x"


@pytest.mark.parametrize("key", ["y", "s", "a", "p", "e", "f"])
async def test_a_question_takes_its_own_keys(key: str) -> None:
    async with keyboard(asking=True) as board:
        assert await board.type(key) == [f"answer {key}"]
        assert await board.type("x", "\r", "\x1b[200~y\x1b[201~", "\x1b[A") == [
            "words x",
            "take held",
            "paste 'y'",
            "words [chip]",
        ]
        assert await board.type("n") == ["refuse True"]
        assert board.actions.buffer.text == ""


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("\x1b[A", "move -1"),
        ("\x1b[B", "move 1"),
        ("\x10", "move -1"),
        ("\x0e", "move 1"),
        ("k", "move -1"),
        ("j", "move 1"),
        ("\r", "choose True"),
        ("\x03", "choose False"),
        ("\x1b", "choose False"),
    ],
)
async def test_a_list_takes_its_own_keys(key: str, asked: str) -> None:
    async with keyboard(choosing=True) as board:
        assert await board.type(key) == [asked]
        assert await board.type("x", "\x04") == []
        assert board.actions.buffer.text == ""


async def test_escape_goes_back_from_a_reason_then_stops_the_model() -> None:
    async with keyboard(refusing=True, busy=True) as board:
        assert await board.type("\x1b") == ["refuse False"]
    async with keyboard(busy=True) as board:
        assert await board.type("\x1b") == ["stop"]


async def test_escape_stops_the_model_at_once_and_alt_with_a_key_does_not() -> None:
    async with keyboard(busy=True) as board:
        board.wait_for_keys(PATIENCE * 2)
        assert await board.type("\x1b") == ["stop"]
        assert await board.type("\x1b\r") == []
        assert board.actions.buffer.text == "\n"


async def test_escape_twice_in_an_empty_input_goes_back_to_a_message() -> None:
    async with keyboard() as board:
        assert await board.type("\x1b") == []
        assert await board.type("x", "\x1b\x1b", "\x7f") == []
    async with keyboard() as board:
        assert await board.type("\x1b\x1b") == ["rewind"]
        assert await board.type("\x1b") == []


async def test_ctrl_c_stops_clears_warns_and_then_leaves() -> None:
    async with keyboard(busy=True) as board:
        assert await board.type("\x03") == ["stop"]
    async with keyboard() as board:
        assert await board.type("text", "\x03") == []
        assert board.actions.buffer.text == ""
        assert await board.type("\x03\x03") == ["hint Press Ctrl-C again to quit 1.0", "leave"]


async def test_up_takes_back_what_waits_only_where_something_does() -> None:
    async with keyboard(can_take_back=True) as board:
        assert await board.type("\x1b[A") == ["take back"]
    async with keyboard() as board:
        assert await board.type("\x1b[A") == []


async def test_enter_on_a_chosen_completion_takes_it_and_sends_nothing() -> None:
    async with keyboard() as board:
        buffer = board.actions.buffer
        await board.type("al")
        completions = [Completion("alpha", start_position=-2)]
        buffer.complete_state = CompletionState(buffer.document, completions, 0)
        assert await board.type("\r") == []
        assert buffer.complete_state is None
        assert await board.type("\r") == ["submit al"]


async def test_tab_goes_through_completions_and_escape_puts_them_away() -> None:
    async with keyboard(busy=True) as board:
        buffer = board.actions.buffer
        await board.type("al")
        buffer.complete_state = CompletionState(
            buffer.document, [Completion("alpha", start_position=-2), Completion("alps", start_position=-2)], None
        )
        await board.type("\t")
        assert buffer.text == "alpha"
        assert await board.type("\x1b") == []
        assert buffer.complete_state is None
