"""Confirmations on the screen: what is asked, why, and the ways to answer; several wait in order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ollm.cli.screen.cells import truncate_cells
from ollm.domain.events import AnyEvent, ConfirmationRequested, ConfirmationResolved
from ollm.domain.text import format_count
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, GrantScope
from ollm.system.terminal_text import clean_lines

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

    from ollm.cli.screen.paint import Painter

KEY_SCOPES: dict[str, GrantScope] = {"y": "once", "s": "session", "a": "always", "p": "always", "e": "everywhere"}
ALL_EDITS_KEY = "f"
EDIT_TOOLS = ("edit_file", "write_file")
QUIET_SECONDS = 0.4
HOLD_SECONDS = 0.25  # seconds in which no other key may follow an answer: then it was the first letter of a word
LONG_DIFF_LINES = 15  # lines of a change that push the question itself out of sight
MAX_PART_LINES = 12  # lines of a part that asks; the whole command is above it
MAX_PART_CHARS = 400
MAX_REASON_CHARS = 240
MAX_GRANT_CHARS = 80


class ConfirmationQueue:
    """The questions that wait, oldest first. `refusing` means that the reason for a no is being typed,
    `writing` that the text is which the question asks for.

    A question takes keys only after a moment without typing: somebody in mid-sentence must not say yes by accident.
    `held` is a key that answers unless another one follows at once.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._waiting: deque[ConfirmationRequested] = deque()
        self._now = now
        self._quiet_since = 0.0
        self.refusing = False
        self.writing = False
        self.held = ""
        self._answered = ""  # the question whose answer is on its way

    @property
    def typing(self) -> bool:
        """True if the input line belongs to the question."""
        return self.refusing or self.writing

    @property
    def current(self) -> ConfirmationRequested | None:
        return self._waiting[0] if self._waiting else None

    @property
    def armed(self) -> bool:
        """True if the next key answers."""
        if self.current is None or self.typing or self.current.correlation_id == self._answered:
            return False
        return self._now() - self._quiet_since >= QUIET_SECONDS

    def note_answer(self) -> None:
        """The current question is answered; its keys count no more."""
        self._answered = self.current.correlation_id if self.current else ""

    def note_typing(self) -> None:
        """The person types something else at this moment."""
        if not self.typing:
            self._quiet_since = self._now()

    def handle_event(self, event: AnyEvent) -> None:
        if isinstance(event, ConfirmationRequested):
            if not self._waiting:
                self._quiet_since = self._now()
            self._waiting.append(event)
        elif isinstance(event, ConfirmationResolved):
            self._forget(event.correlation_id)

    def _forget(self, correlation_id: str) -> None:
        if self.current and self.current.correlation_id == correlation_id:
            self.refusing = self.writing = False
            self.held = ""
            self._quiet_since = self._now()
        self._waiting = deque(asked for asked in self._waiting if asked.correlation_id != correlation_id)

    def answer(self, key: str) -> ConfirmationAnswer | None:
        """Answer for a key at the current question; None if the key means nothing here."""
        if self.current is None or key not in KEY_SCOPES:
            return None
        scope = KEY_SCOPES[key]
        if (scope != "once" and not self._can_grant()) or (key == "p" and not self.current.details.prefix):
            return None
        return ConfirmationAnswer(approved=True, scope=scope, prefix=key == "p")

    @property
    def offers_all_edits(self) -> bool:
        details = self.current.details if self.current else None
        return bool(details and details.tool in EDIT_TOOLS and not details.locked)

    def format_choices(self) -> str:
        """Format the line under the question; empty if there is no question."""
        if self.current is None:
            return ""
        if self.writing:
            return "Your answer: Enter sends it, Esc goes back."
        if self.refusing:
            return "Reason (optional): Enter sends it to the model, Esc goes back."
        if not self.armed:
            return "…"
        details = self.current.details
        if details.typed:
            return f"[y] type an answer · [n] no{self._describe_others()}"
        asked = (
            f"{truncate_cells(clean_lines(details.description), 60)}? "
            if details.diff.count("\n") > LONG_DIFF_LINES
            else ""
        )
        wider = f" · {describe_grants(details)}" if self._can_grant() else ""
        wider += f" · [{ALL_EDITS_KEY}] all file edits this session" if self.offers_all_edits else ""
        return f"{asked}[y] yes{wider} · [n] no{self._describe_others()}"

    def _describe_others(self) -> str:
        return f" · {len(self._waiting) - 1} more" if len(self._waiting) > 1 else ""

    def _can_grant(self) -> bool:
        details = self.current.details if self.current else None
        return bool(details and details.grant and not details.locked)


def describe_grants(details: ConfirmationDetails) -> str:
    """The ways to be asked less, and where each of them counts."""
    prefix = shorten_text(clean_lines((details.prefix or "")[6:]), MAX_GRANT_CHARS)
    wider = f" · [p] always here, all that begins with {prefix}" if prefix else ""
    grant = shorten_text(clean_lines(details.grant or ""), MAX_GRANT_CHARS)
    return f"[s] this session · [a] always in this workspace ({grant}){wider} · [e] everywhere"


class AnswerKeys:
    """Keys at a question, and the draft of the input line meanwhile. `send` gets the question's id with the answer;
    `accept_edits` lets all later edits through."""

    def __init__(
        self,
        questions: ConfirmationQueue,
        buffer: Buffer,
        send: Callable[[str, ConfirmationAnswer], None],
        accept_edits: Callable[[], None],
    ) -> None:
        self._questions = questions
        self._buffer = buffer
        self._send = send
        self._accept_edits = accept_edits
        self._draft = ""

    def answer(self, key: str) -> None:
        """A key of the question: it counts once no other key has followed for a moment."""
        asked = self._questions
        current, offers = asked.current, key == ALL_EDITS_KEY and asked.offers_all_edits
        if key == "y" and current and current.details.typed and not asked.held:
            asked.writing = True
            self._clear_draft()
        elif asked.held or not (offers or asked.answer(key)):
            self.type_instead(key)
        else:
            asked.held = key
            asyncio.get_running_loop().call_later(HOLD_SECONDS, self._take_if_held, current, key)

    def _take_if_held(self, asked: ConfirmationRequested | None, key: str) -> None:
        if self._questions.held == key and self._questions.current is asked:
            self.take_held()

    def take_held(self) -> bool:
        """Answer with the key that was held; whether there was one."""
        key, self._questions.held = self._questions.held, ""
        if key == ALL_EDITS_KEY:
            self._accept_edits()
            self._respond(ConfirmationAnswer(approved=True, text="all file edits this session"))
        elif answer := self._questions.answer(key):
            self._respond(answer)
        return bool(key)

    def type_instead(self, text: str) -> None:
        """Words, not an answer: they wait in the input line."""
        held, self._questions.held = self._questions.held, ""
        self._buffer.insert_text(held + text)

    def refuse(self, yes: bool) -> None:
        """Ask for the reason in the input line; what was there comes back afterwards."""
        if yes and self._questions.held:
            self.type_instead("n")
            return
        self._questions.refusing, self._questions.writing = yes, False
        if yes:
            self._clear_draft()
        else:
            self._restore_draft()

    def submit(self, text: str) -> None:
        """Take the typed text as the answer, or as the reason for a no."""
        yes = self._questions.writing
        self._respond(ConfirmationAnswer(approved=yes, text=text if yes else "", reason="" if yes else text))
        self._restore_draft()

    def _clear_draft(self) -> None:
        self._draft = self._buffer.text
        self._buffer.reset()

    def _restore_draft(self) -> None:
        self._buffer.reset()
        self._buffer.insert_text(self._draft)
        self._draft = ""

    def _respond(self, answer: ConfirmationAnswer) -> None:
        current = self._questions.current
        self._questions.refusing = self._questions.writing = False
        if current:
            self._questions.note_answer()
            self._send(current.correlation_id, answer)


def paint_question(details: ConfirmationDetails, painter: Painter) -> str:
    """The question, printed above the input: what it is about first and whole, what asks last, beside the keys."""
    asks = f"{details.risk} risk · {details.reason}{describe_rule(details)}"
    text = painter.paint_rule("yellow")
    if not details.command:
        text += painter.paint_aside(f"? {details.description}", "bold yellow")
        text += painter.paint_diff(details.diff) if details.diff else ""
        return text + painter.paint_aside(asks, "dim")
    text += painter.paint_aside(f"$ {details.command}")
    text += painter.paint_aside(asks, "dim")
    allowed, asking = split_parts(details)
    if allowed:
        text += painter.paint_aside(
            f"{allowed} of its {allowed + len(asking)} parts {'is' if allowed == 1 else 'are'} allowed; this asks:",
            "dim",
        )
    return text + "".join(painter.paint_aside(f"? {line}", "bold yellow") for line in asking)


def split_parts(details: ConfirmationDetails) -> tuple[int, list[str]]:
    """Count the allowed parts of a command, and list the others with their reasons."""
    asking = [part for part in details.parts if part.decision != "allow"]
    if not asking:
        return 0, [details.description]
    lines = [f"{shorten_part(part.command)} ({shorten_text(part.reason, MAX_REASON_CHARS)})" for part in asking]
    return len(details.parts) - len(asking), lines


def shorten_part(text: str) -> str:
    """A part that is too long to fit beside the keys, with how much of it is only shown above."""
    lines = [shorten_text(line, MAX_PART_CHARS) for line in text.split("\n")]
    if len(lines) <= MAX_PART_LINES:
        return "\n".join(lines)
    hidden = len(lines) - MAX_PART_LINES
    return "\n".join(
        [*lines[: MAX_PART_LINES - 1], f"… {format_count(hidden, 'more line')} in the command above …", lines[-1]]
    )


def shorten_text(text: str, most: int) -> str:
    """The beginning and the end of a text that is above as a whole, with how much of it is left out here."""
    if len(text) <= most:
        return text
    begin, end = most * 2 // 3, most // 3
    return f"{text[:begin]} … {format_count(len(text) - begin - end, 'character')}, see above … {text[-end:]}"


def describe_rule(details: ConfirmationDetails) -> str:
    """The rule that asks, and where it is."""
    found = details.rule
    if found is None:
        return ""
    place = f" at {found.file}:{found.line}" if found.file else ""
    return f" ({found.layer} rule: {found.text}{place})"
