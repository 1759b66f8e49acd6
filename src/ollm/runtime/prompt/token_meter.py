"""Size of the context: the server's exact count of the last request plus an estimate of later messages."""

from __future__ import annotations

import math

import msgspec

from ollm.domain.context import Budget, Usage
from ollm.domain.events import PromptTruncated
from ollm.domain.model_facts import ShownThinking
from ollm.domain.struct import Data
from ollm.services import budget as rules
from ollm.services.token_counting import TokenCounter

PLAUSIBLE_TOKENS_PER_UNIT = (0.4, 4.0)  # Counts outside these limits say nothing.
TRUNCATION_PROOF_RATIO = 1.02  # An exact count proves a cut if it exceeds the reported one by this factor.
MAX_SHORTFALL_RATIO = 1.5
DOUBT_RATIO = 1.1
DISTRUST_RATIO = 1.15
SLACK_TOKENS = 16  # A template may add these tokens.
NEW_DOUBT_SHARE = 0.4  # This share of the tokens since the last count is in doubt.
# Of the whole where nothing of it was counted, by samples of the factor. Without one, vocabularies differ by so much.
DOUBT_SHARES = ((8, 0.1), (3, 0.15), (1, 0.25), (0, 0.75))
UNCOUNTED_ANSWER_SHARE = 1 / 12  # Doubt leaves an answer this share of the window if nothing was counted.
MIN_PLATEAU_TOKENS = 64  # A count that stands still proves a cut only after this growth.
PLATEAU_SHARE = 0.2  # A count that shows less of the growth stands still.
MIN_TRUNCATED_RATIO = 0.5  # Servers that cut a prompt still read more than this share.


class CountedPrompt(Data, frozen=True):
    """A request with its units before and in the messages, and the server's count of it (0 while it is not known).
    Saved with its session as a start for the next process."""

    tokens: int
    prefix_units: float
    message_units: float
    doubt_units: float = 0.0


class Meter:
    """Measures the size of the context. Adding a message costs one addition, however long the context is."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._plain_units = 0.0  # The thinking in messages is counted separately.
        self._old_thinking, self._new_thinking = 0.0, 0.0  # Thinking of earlier turns is old.
        self._doubted_thinking = 0.0  # The next count tells whether the template shows this thinking.
        self.shown_thinking: ShownThinking | None = None  # None means unknown: all thinking counts as shown.
        self.thinking_units = self.message_units = 0.0  # Both include only the thinking that the template shows.
        self.doubt_units = 0.0  # Characters that few vocabularies know may add these units to the messages.
        self.prefix_units = 0.0  # The prefix is the system prompt, tool schemas, worked calls and checkpoints.
        self._sent: CountedPrompt | None = None
        self._extends = False  # Set if the last request sent begins with the last counted one.
        self._counted: CountedPrompt | None = None
        self._unsure = False
        self._asks_about: ShownThinking = "turn"  # The doubted thinking is of this turn or of earlier ones.
        self._resumed: CountedPrompt | None = None  # Another process counted it for a request that this one continues.
        self._short = 1.0  # The last estimate fell short by this factor.
        self.most_read = 0  # No larger prompt is known to have been read whole.

    def set_shown_thinking(self, shown: ShownThinking | None) -> None:
        """Set how much of the thinking that goes back the template shows."""
        self.shown_thinking = shown
        self._add_up()

    def _add_up(self) -> None:
        old = 0.0 if self.shown_thinking == "turn" else self._old_thinking
        self.thinking_units = 0.0 if self.shown_thinking == "none" else self._new_thinking + old
        self.message_units = self._plain_units + self.thinking_units

    def add_units(self, units: float, doubt_units: float = 0.0, thinking: float = 0.0) -> None:
        self._plain_units += units
        self._new_thinking += thinking
        self._doubted_thinking += thinking
        self.doubt_units += doubt_units
        self._add_up()

    def begin_turn(self) -> None:
        """Count the thinking so far as that of an earlier turn, which many templates leave out."""
        before, moved = self.thinking_units, self._new_thinking
        counted = moved - self._doubted_thinking  # The rest is newer than the last count.
        self._old_thinking, self._new_thinking = self._old_thinking + moved, 0.0
        self._doubted_thinking, self._asks_about = moved, "session"
        self._add_up()
        if self._counted is not None and before > self.thinking_units:
            tokens = max(0, self._counted.tokens - self.counter.convert_to_tokens(counted))
            units = self._counted.message_units - counted
            self._counted = msgspec.structs.replace(self._counted, tokens=tokens, message_units=units)

    def set_prefix_units(self, units: float) -> None:
        if units != self.prefix_units:
            self.prefix_units = units
            self._forget_count()
            self._adopt_resumed()

    def restart(self, plain_units: float, doubt_units: float = 0.0, thinking: tuple[float, float] = (0.0, 0.0)) -> None:
        """Start over after a compression or a restore replaced the messages. `thinking` is that of earlier turns and
        of this one."""
        self._plain_units, self.doubt_units = plain_units, doubt_units
        self._old_thinking, self._new_thinking = thinking
        self._doubted_thinking = 0.0
        self._add_up()
        self._resumed = None
        self._forget_count()

    @property
    def counted_prompt(self) -> CountedPrompt | None:
        """The server's last count, if it still holds for the current prompt."""
        return None if self._unsure else self._counted

    def resume_count(self, counted: CountedPrompt | None) -> None:
        """Start with the count of an earlier process, once everything before the messages is the same."""
        self._resumed = counted
        self._adopt_resumed()

    def _adopt_resumed(self) -> None:
        """Adopt the resumed count if the model was counted on this server: another server may count differently."""
        known = self._resumed
        if known is None or not self.counter.samples or not math.isclose(known.prefix_units, self.prefix_units):
            return
        if known.message_units > self.message_units + 1:
            return
        self._counted = known
        self._measure_shortfall(known.prefix_units + known.message_units, known.tokens)

    def _measure_shortfall(self, amount: float, tokens: int) -> None:
        self._short = min(MAX_SHORTFALL_RATIO, max(1.0, tokens / self.counter.convert_to_tokens(amount)))

    def _forget_count(self) -> None:
        self._counted = None
        self._unsure = False

    @property
    def total_tokens(self) -> int:
        exact = 0
        if self._counted is not None:
            added = max(0.0, self.message_units - self._counted.message_units) * self._short
            exact = self._counted.tokens + self.counter.convert_to_tokens(added)
            if not self._unsure:
                return exact
        return max(exact, self.counter.convert_to_tokens((self.prefix_units + self.message_units) * self._short))

    def compute_answer_tokens(self, state: Budget) -> int:
        """Compute the tokens an answer may take. If none of the prompt was counted, the doubt leaves it a share of the
        window: an answer cut off after a few words is useless. Odd characters count more in the first request."""
        total, counted = self.total_tokens, self._counted
        before = counted.doubt_units if counted is not None else 0.0
        denser = max(1.0, self.counter.factor * self._short)  # This vocabulary may need more tokens.
        odd = SLACK_TOKENS + math.ceil(max(0.0, self.doubt_units - before) * denser)
        doubt = odd + self._compute_doubt(total)
        if counted is None:
            spare = max(0, int(state.window * (1 - UNCOUNTED_ANSWER_SHARE)) - total)
            doubt = min(doubt, spare if self.counter.samples else spare + odd)
        return rules.compute_answer_tokens(state, total, doubt)

    def _compute_doubt(self, total: int) -> int:
        """Compute the possible shortfall of the count: small for counted tokens, larger for later ones."""
        if self._counted is not None and not self._unsure:
            return math.ceil(NEW_DOUBT_SHARE * (total - self._counted.tokens))
        return math.ceil(next(share for samples, share in DOUBT_SHARES if self.counter.samples >= samples) * total)

    def distrust(self) -> None:
        """Raise the estimate: the server counts more tokens, by an unknown amount."""
        self._short = min(MAX_SHORTFALL_RATIO, self._short * DISTRUST_RATIO)

    @property
    def message_tokens(self) -> int:
        return max(0, self.total_tokens - self.counter.convert_to_tokens(self.prefix_units))

    def mark_sent(self) -> None:
        """Record that a request with everything counted so far is being sent."""
        self._extends = self._counted is not None and self._resumed is None  # Another process's count proves no cut.
        self._sent = CountedPrompt(
            tokens=0, prefix_units=self.prefix_units, message_units=self.message_units, doubt_units=self.doubt_units
        )

    def correct_sent_prefix(self, prefix_units: float) -> None:
        """Correct the prefix of the last request, which differed from the counted one."""
        if self._sent is not None:
            self._sent, self._extends = msgspec.structs.replace(self._sent, prefix_units=prefix_units), False
        self.set_prefix_units(prefix_units)

    def should_verify_count(self, reported: int, window: int) -> bool:
        """Return True if the server reports so few of the sent tokens that an exact count is worthwhile."""
        if self._sent is None or reported <= 0:
            return False
        if self._extends and self._counted is not None and reported < self._counted.tokens:
            return True  # Some templates leave out the system message or the tools of a conversation.
        return reported > window // 4 and (
            self.counter.convert_to_tokens(self._sent.prefix_units + self._sent.message_units) > DOUBT_RATIO * reported
        )

    def observe_usage(self, usage: Usage, exact: int | None = None, *, said_so: bool = False) -> PromptTruncated | None:
        """Learn from the server's count of the last request. Return an event if it proves that the prompt was cut.

        `exact` is a count of this very prompt, rendered; `said_so` means the server itself reported the cut.
        """
        sent, reported = self._sent, usage.prompt_tokens
        if sent is None:
            return None
        if (said_so and reported < self.total_tokens) or self._proves_truncation(sent, reported, exact):
            return PromptTruncated(sent_tokens=max(exact or 0, self.total_tokens), read_tokens=max(0, reported))
        sent = self._learn_shown_thinking(sent, reported)
        amount = sent.prefix_units + sent.message_units
        if reported <= 0:
            self.counter.trust_estimate()
        if not PLAUSIBLE_TOKENS_PER_UNIT[0] <= reported / max(1.0, amount) <= PLAUSIBLE_TOKENS_PER_UNIT[1]:
            self._unsure = True
            return None
        self.counter.learn(amount, reported)
        self._measure_shortfall(amount, reported)
        self._counted = msgspec.structs.replace(sent, tokens=reported)
        self._unsure, self._resumed = False, None
        self.most_read = max(self.most_read, reported)
        return None

    def _learn_shown_thinking(self, sent: CountedPrompt, reported: int) -> CountedPrompt:
        """Learn from the growth of the count whether the template shows the thinking that is new to it."""
        known, asked = self._counted, self._asks_about
        doubted, self._doubted_thinking, self._asks_about = self._doubted_thinking, 0.0, "turn"
        tokens = self.counter.convert_to_tokens(doubted)
        if known is None or self._unsure or tokens < MIN_PLATEAU_TOKENS or reported <= 0 or self._is_hidden(asked):
            return sent
        grown = self.counter.convert_to_tokens(sent.message_units - known.message_units)
        if reported > known.tokens + grown - tokens // 2:
            self.set_shown_thinking("session" if asked == "session" else self.shown_thinking)
            return sent
        before = self.message_units
        self.set_shown_thinking("turn" if asked == "session" else "none")
        return msgspec.structs.replace(sent, message_units=sent.message_units - before + self.message_units)

    def _is_hidden(self, asked: ShownThinking) -> bool:
        return self.shown_thinking == "none" or (self.shown_thinking == "turn" and asked == "session")

    def _proves_truncation(self, sent: CountedPrompt, reported: int, exact: int | None) -> bool:
        """Return True if fewer tokens were read than counted exactly, or than in an earlier request this one extends.

        A far lower count is no proof: some servers leave out cached tokens."""
        if reported <= 0:
            return False
        if exact is not None:
            return exact > reported * TRUNCATION_PROOF_RATIO
        earlier = self._counted.tokens - self._thinking_slack if self._counted is not None else 0
        if self._extends and MIN_TRUNCATED_RATIO * earlier <= reported < earlier:
            return True
        return self._is_plateau(sent, reported)

    @property
    def _thinking_slack(self) -> int:
        """Tokens by which a prompt may shrink because a template shows no thinking before the last user message."""
        return self.counter.convert_to_tokens(self._old_thinking + self._new_thinking)

    def _is_plateau(self, sent: CountedPrompt, reported: int) -> bool:
        """Return True if the count stays the same while prompts grow: the server silently cuts the rest."""
        if self._counted is None or not self._extends:
            return False
        grown = self.counter.convert_to_tokens(max(0.0, sent.message_units - self._counted.message_units))
        grown -= self._thinking_slack
        return grown >= MIN_PLATEAU_TOKENS and 0 <= reported - self._counted.tokens < PLATEAU_SHARE * grown
