"""Confirmations on the screen: the question, its reason, and its answers. Several wait in order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from ollm.cli.screen.cells import truncate_cells, wrap_words
from ollm.domain.events import ConfirmationRequested, ConfirmationResolved, Event
from ollm.domain.text import fold_lines, format_count
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, GrantScope
from ollm.system.terminal_text import clean_lines

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

    from ollm.cli.screen.paint import Painter

KEY_SCOPES: dict[str, GrantScope] = {"y": "once", "s": "session", "a": "always", "p": "always", "e": "everywhere"}
ALL_EDITS_KEY = "f"
ANSWER_KEYS = (*KEY_SCOPES, ALL_EDITS_KEY, "n")
EDIT_TOOLS = ("edit_file", "write_file")
BRIEF_ANSWERS = ("y", "n")  # All other answers grant more and need Enter.
KEYS_HINT = "Tab and Enter, or a letter · Esc stops"
GRANTS_HINT = "↑↓ choose · Enter confirms · Esc back"
HELD_HINT = "Enter confirms · Esc stops"
TEXT_HINT = "Enter sends the text · ↑↓ and Enter answer · Esc stops"
QUIET_SECONDS = 0.4
HOLD_SECONDS = 0.25  # Another key in this time shows that the letter began a word.
LONG_DIFF_LINES = 15  # A longer change pushes the question out of sight.
MAX_PART_LINES = 12  # The whole command stands above its parts.
MAX_PART_CHARS = 300
MAX_REASON_CHARS = 240
MAX_GRANT_CHARS = 80
MAX_BRIEF_CHARS = 40
ROW_GAP = "    "
TYPING_HINTS = {
    "answer": "Your answer: Enter sends it, Esc goes back.",
    "reason": "Reason (optional): Enter sends it to the model, Esc goes back.",
}


class ConfirmationQueue:
    """Pending questions, oldest first, and the keys that answer them. `attach` names the input line and what to call.

    A question takes keys only after a pause in typing, and letters only if the input line is empty, so that a person
    in mid-sentence cannot say yes by accident. `held_key` waits to become an answer or the first letter of a text.
    `place` is the selected answer, None before an arrow or a key. `unfolded`: the lasting grants are shown. `typing`:
    the input line takes the reason for a no, or the text that the question asks for.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._waiting: deque[ConfirmationRequested] = deque()
        self._now = now
        self._quiet_since = 0.0
        self.typing: Literal["", "reason", "answer"] = ""
        self.held_key = ""
        self.place: int | None = None
        self.unfolded = False
        self._answered = ""  # The question has an answer on its way.
        self._typed_at: ConfirmationRequested | None = None  # The question at the start of the input.
        self._draft = ""  # The input before an answer was typed.

    def attach(
        self, buffer: Buffer, send: Callable[[str, ConfirmationAnswer], None], accept_edits: Callable[[], None]
    ) -> None:
        """Set the input line. `send` gets a question's id and its answer; `accept_edits` approves all later edits."""
        self._buffer, self._send, self._accept_edits = buffer, send, accept_edits

    @property
    def current(self) -> ConfirmationRequested | None:
        return self._waiting[0] if self._waiting else None

    @property
    def takes_keys(self) -> bool:
        if self.current is None or self.typing or self.current.correlation_id == self._answered:
            return False
        return self._now() - self._quiet_since >= QUIET_SECONDS

    @property
    def choices(self) -> dict[str, str]:
        """Answers in sight: three, or the lasting grants behind `always`."""
        collect = list_grants if self.unfolded else list_answers
        return collect(self.current.details) if self.current else {}

    def unfold(self, key: str) -> None:
        """Show the lasting grants, with that of a key selected."""
        self.unfolded = True
        self.place = list(self.choices).index(key) if key in self.choices else 0

    def fold(self) -> None:
        self.unfolded, self.place, self.held_key = False, None, ""

    def note_typing(self) -> None:
        """Note that the person is typing something else: nothing is selected then."""
        if not self.typing:
            self._quiet_since = self._now()
            self.fold()

    def handle_event(self, event: Event) -> None:
        if isinstance(event, ConfirmationRequested):
            if not self._waiting:
                self._quiet_since = self._now()
            self._waiting.append(event)
        elif isinstance(event, ConfirmationResolved):
            self._forget(event.correlation_id)

    def _forget(self, correlation_id: str) -> None:
        if self.current and self.current.correlation_id == correlation_id:
            self.typing = ""
            self.fold()
            self._quiet_since = self._now()
        self._waiting = deque(asked for asked in self._waiting if asked.correlation_id != correlation_id)

    def move(self, steps: int) -> None:
        self.held_key = ""
        self.place = max(0, min((self.place or 0) + steps, len(self.choices) - 1))

    def press(self, key: str) -> None:
        """Select an answer by its key on an empty line. Yes and no follow unless another key comes at once; a grant
        that outlives the question waits for Enter. Any other key goes to the input line."""
        grants = list_grants(self.current.details) if self.current else {}
        if self.held_key or key not in {**self.choices, **grants}:
            self.type_instead(key)
            return
        if key in grants:
            self.unfold(key)
        else:
            self.place = list(self.choices).index(key)
        self.held_key = key
        if key in BRIEF_ANSWERS:
            asyncio.get_running_loop().call_later(HOLD_SECONDS, self._take_if_held, self.current)

    def _take_if_held(self, asked: ConfirmationRequested | None) -> None:
        if self.held_key and self.current is asked:
            self.take_selected()

    def take_selected(self) -> bool:
        """Answer with Enter. Returns False if text was typed and no arrow pressed: the text is then sent."""
        if self.place is None and self._buffer.text.strip():
            return False
        key = list(self.choices)[self.place or 0]
        is_final = self.unfolded or key in BRIEF_ANSWERS
        self.held_key = ""
        self._choose(key) if is_final else self.unfold(key)
        return True

    def type_instead(self, text: str) -> None:
        """Insert typed text into the input line instead of answering with a key."""
        if not self._buffer.text:
            self._typed_at = self.current
        self._buffer.insert_text(self.held_key + text)

    def take_words(self, text: str) -> bool:
        """Answer with a line typed at the question. Returns False for a line that is no answer or was begun before."""
        current = self.current
        answer = parse_answer(text, current.details) if current and current is self._typed_at else None
        if answer:
            self._respond(answer)
        return answer is not None

    def _choose(self, key: str) -> None:
        if key == "n" or (key == "y" and self.current and self.current.details.typed):
            self.typing = "reason" if key == "n" else "answer"
            self._draft = self._buffer.text
            self._buffer.reset()
        elif key == ALL_EDITS_KEY:
            self._accept_edits()
            self._respond(ConfirmationAnswer(approved=True, text="all file edits this session"))
        else:
            self._respond(ConfirmationAnswer(approved=True, scope=KEY_SCOPES[key], prefix=key == "p"))

    def cancel_typing(self) -> None:
        self.typing = ""
        self._buffer.reset()
        self._buffer.insert_text(self._draft)

    def submit(self, text: str) -> None:
        """Answer with the typed text, and give the earlier input back."""
        yes = self.typing == "answer"
        self._respond(ConfirmationAnswer(approved=yes, text=text if yes else "", reason="" if yes else text))
        self.cancel_typing()

    def _respond(self, answer: ConfirmationAnswer) -> None:
        self.typing = ""
        if self.current:
            self._answered = self.current.correlation_id
            self._send(self._answered, answer)

    def render_lines(self, width: int, *, has_text: bool = False) -> list[tuple[str, str]]:
        """Render the answers below the question as style and text, or return [] without a question. `has_text`: the
        input line holds a text, which Enter sends unless an arrow was pressed."""
        if self.current is None:
            return []
        if self.typing:
            return [("class:question", f"  {TYPING_HINTS[self.typing]}")]
        if not self.takes_keys:
            return [("class:question", "  …")]
        others = f" · {len(self._waiting) - 1} more" if len(self._waiting) > 1 else ""
        hint = HELD_HINT if self.held_key else TEXT_HINT if has_text else KEYS_HINT
        hint = f"  {GRANTS_HINT if self.unfolded else hint}{others}"
        rows = self._render_choices(width, None if has_text and self.place is None else self.place or 0)
        return [*self._render_subject(width), *rows, ("class:hint", truncate_cells(hint, width))]

    def _render_subject(self, width: int) -> list[tuple[str, str]]:
        """Name the question again below a long change. Above the grants, say why it is asked."""
        assert self.current
        details = self.current.details
        if self.unfolded:
            reason = clean_lines(f"{details.reason}{describe_rule(details)}")
            return [("class:hint", f"{line}\n") for line in wrap_words(f"Asked because {reason}", width, "  ")]
        if details.diff.count("\n") <= LONG_DIFF_LINES:
            return []
        return [("class:question", truncate_cells(f"  {clean_lines(details.description)}?", width) + "\n")]

    def _render_choices(self, width: int, chosen: int | None) -> list[tuple[str, str]]:
        """Render the answers in one row if they fit and no grants are shown, else below each other."""
        cells = [f"[{key}] {text}" for key, text in self.choices.items()]
        is_row = not self.unfolded and sum(len(cell) + len(ROW_GAP) for cell in cells) < width
        fragments: list[tuple[str, str]] = []
        for place, cell in enumerate(cells):
            first, *more = [cell] if is_row else wrap_words(cell, width - 2)
            key, _, text = first.partition(" ")
            styles = ("class:chosen", "class:chosen") if place == chosen else ("class:key", "class:question")
            fragments += [(styles[0], f"{'›' if place == chosen else ' '} {key}"), (styles[1], f" {text}")]
            fragments.append(("", "\n" if not is_row or place == len(cells) - 1 else "  "))
            fragments += [("class:question", f"      {line}\n") for line in more]
        return fragments


def list_answers(details: ConfirmationDetails) -> dict[str, str]:
    if details.typed:
        return {"y": "type an answer", "n": "no"}
    always = {"a": "always …"} if list_grants(details) else {}
    return {"y": "yes", **always, "n": "no, because …"}


def list_grants(details: ConfirmationDetails) -> dict[str, str]:
    """List the approvals that outlive the question, by key, each with its scope."""
    if details.locked or details.typed:
        return {}
    choices = {ALL_EDITS_KEY: "all file edits this session"} if details.tool in EDIT_TOOLS else {}
    if details.grant:
        grant = shorten_text(clean_lines(details.grant), MAX_GRANT_CHARS)
        brief = grant if len(grant) <= MAX_BRIEF_CHARS else "the rule of [a]"
        choices |= {"s": f"yes, for this session ({brief})", "a": f"always in this workspace ({grant})"}
        if prefix := shorten_text(clean_lines((details.prefix or "")[6:]), MAX_GRANT_CHARS):
            choices["p"] = f"always in this workspace, every command that begins with {prefix}"
        choices["e"] = f"always in every workspace ({brief})"
    return choices


def parse_answer(line: str, details: ConfirmationDetails) -> ConfirmationAnswer | None:
    """Parse a typed answer: yes, no with a reason, an offered letter, or the text that the question asks for."""
    word, _, rest = line.strip().partition(" ")
    key = word.rstrip(",.:;!").lower()
    if details.typed and key not in ("/n", "/no"):
        return ConfirmationAnswer(approved=True, text=line.strip())
    if key in ("y", "yes"):
        return ConfirmationAnswer(approved=True, text=rest)
    if key in ("n", "no", "/n", "/no"):
        return ConfirmationAnswer(approved=False, reason=rest)
    if not rest and key in list_grants(details) and key in KEY_SCOPES:
        return ConfirmationAnswer(approved=True, scope=KEY_SCOPES[key], prefix=key == "p")
    return None


def paint_question(details: ConfirmationDetails, painter: Painter) -> str:
    """Paint the question above the input: its full subject first, and what is unusual about it last, beside the
    keys. A long command's parts that ask are shown again there."""
    rule = describe_rule(details) if details.rule and details.rule.file else ""
    why = painter.paint_aside(details.unusual + rule, "yellow") if details.unusual else ""
    if not details.command:
        text = painter.paint_aside(f"? {details.description}", "bold")
        return text + (painter.paint_diff(details.diff) if details.diff else "") + why
    text = painter.paint_aside(f"$ {details.command}", "bold")
    allowed, asking = split_parts(details)
    if len(details.parts) < 2 and "\n" not in details.command and len(details.command) <= MAX_PART_CHARS:
        return text + why
    text += why + (painter.paint_aside(describe_allowed(allowed, asking), "dim") if allowed else "")
    return text + "".join(painter.paint_aside(f"? {line}", "bold") for line in asking)


def describe_allowed(allowed: int, asking: list[str]) -> str:
    these = "this one needs" if len(asking) == 1 else "these need"
    return (
        f"{allowed} of its {allowed + len(asking)} parts {'is' if allowed == 1 else 'are'} allowed; {these} approval:"
    )


def split_parts(details: ConfirmationDetails) -> tuple[int, list[str]]:
    """Count the allowed parts of a command, and list the others with their reasons."""
    asking = [part for part in details.parts if part.decision != "allow"]
    if not asking:
        return 0, [details.description]
    reasons = [part.reason if details.unusual and part.reason != details.reason else "" for part in asking]
    shown = [f" ({shorten_text(reason, MAX_REASON_CHARS)})" if reason else "" for reason in reasons]
    lines = [shorten_part(part.command) + reason for part, reason in zip(asking, shown, strict=True)]
    return len(details.parts) - len(asking), lines


def shorten_part(text: str) -> str:
    """Shorten a part that does not fit beside the keys, and state how much is only shown above."""
    lines = [shorten_text(line, MAX_PART_CHARS) for line in text.split("\n")]
    return "\n".join(fold_lines(lines, MAX_PART_LINES - 1, 1, " in the command above …"))


def shorten_text(text: str, most: int) -> str:
    """Shorten a text that is shown in full above, and state how much is omitted."""
    if len(text) <= most:
        return text
    begin, end = most * 2 // 3, most // 3
    return f"{text[:begin]} … {format_count(len(text) - begin - end, 'character')}, see above … {text[-end:]}"


def describe_rule(details: ConfirmationDetails) -> str:
    found = details.rule
    if found is None:
        return ""
    place = f" at {found.file}:{found.line}" if found.file else ""
    return f" ({found.layer} rule: {found.text}{place})"
