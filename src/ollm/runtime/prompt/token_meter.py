"""How full the context is: the server's exact count of the last request plus an estimate of what came since."""

from __future__ import annotations

import math

import msgspec

from ollm.domain.context import Budget, Usage
from ollm.domain.events import PromptTruncated
from ollm.domain.struct import Data
from ollm.services import budget as rules
from ollm.services.token_counting import TokenCounter

PLAUSIBLE_TOKENS_PER_UNIT = (0.4, 4.0)  # tokens a unit; counts outside say nothing
TRUNCATION_PROOF_RATIO = 1.02  # an exact count must be over the reported one by this much
MAX_SHORTFALL_RATIO = 1.5
DOUBT_RATIO = 1.1
DISTRUST_RATIO = 1.15
SLACK_TOKENS = 16  # that a template may add
NEW_DOUBT_SHARE = 0.35  # of what came since the last count
# Of the whole where nothing of it was counted, by samples of the factor. Without one, vocabularies differ by so much.
DOUBT_SHARES = ((8, 0.1), (3, 0.15), (1, 0.25), (0, 0.75))
UNCOUNTED_ANSWER_SHARE = 1 / 12  # of the window, that doubt leaves an answer where nothing was counted
MIN_PLATEAU_TOKENS = 64  # by which a prompt must have grown for a count that stands still to prove a cut
PLATEAU_SHARE = 0.2  # of that growth, at most, the count may show
MIN_TRUNCATED_RATIO = 0.5  # servers that cut a prompt keep more than this of what they can read


class SentRequest(msgspec.Struct, frozen=True):
    """A request as it went out: units of everything before the messages, and of the messages."""

    prefix_units: float
    message_units: float
    extends: bool  # the last counted request is the beginning of this one
    doubt_units: float = 0.0


class CountedPrompt(Data, frozen=True):
    """What the server counted of a request, kept with its session: the next process begins with it."""

    tokens: int
    prefix_units: float
    message_units: float
    doubt_units: float = 0.0


class Meter:
    """Adding a message costs one addition, however long the context is."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self.message_units = 0.0  # units of all messages
        self.doubt_units = 0.0  # by which signs that few vocabularies know may make messages more than that
        self.prefix_units = 0.0  # units of system prompt, tool schemas, worked calls and checkpoints
        self._sent: SentRequest | None = None
        self._counted: CountedPrompt | None = None
        self._unsure = False
        self._resumed: CountedPrompt | None = None  # by another process, of a request that this one goes on from
        self._last_counted: tuple[float, int] | None = None  # units and tokens of the last request that was counted
        self._short = 1.0  # by how much the last estimate fell short, until the factor has caught up
        self.most_read = 0  # the largest prompt known to have been read whole

    def add_units(self, units: float, doubt_units: float = 0.0) -> None:
        self.message_units += units
        self.doubt_units += doubt_units

    def set_prefix_units(self, units: float) -> None:
        if units != self.prefix_units:
            self.prefix_units = units
            self._forget_count()
            self._adopt_resumed()

    def restart(self, message_units: float, doubt_units: float = 0.0) -> None:
        """The messages were replaced: compression, restore."""
        self.message_units, self.doubt_units = message_units, doubt_units
        self._resumed = None
        self._forget_count()

    @property
    def counted_prompt(self) -> CountedPrompt | None:
        """What the last count proved of the prompt as it is."""
        return None if self._unsure else self._counted

    def resume_count(self, counted: CountedPrompt | None) -> None:
        """Begin with a count of an earlier process, as soon as everything before the messages is what it was."""
        self._resumed = counted
        self._adopt_resumed()

    def _adopt_resumed(self) -> None:
        """Only for a model that was counted on this server: another server may count otherwise."""
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
        estimate = self.counter.convert_to_tokens((self.prefix_units + self.message_units) * self._short)
        if self._counted is None:
            return estimate
        exact = self._counted.tokens + self.counter.convert_to_tokens(
            max(0.0, self.message_units - self._counted.message_units) * self._short
        )
        return max(exact, estimate) if self._unsure else exact

    @property
    def odd_tokens(self) -> int:
        """What signs may add that a vocabulary may not know, the more so where it counts more than others do."""
        before = self._counted.doubt_units if self._counted is not None else 0.0
        denser = max(1.0, self.counter.factor * self._short)
        return SLACK_TOKENS + math.ceil(max(0.0, self.doubt_units - before) * denser)

    @property
    def doubtful_tokens(self) -> int:
        """What the count may be short by: little of what the server counted, more of what came since, most of odd
        signs."""
        if self._counted is not None and not self._unsure:
            return self.odd_tokens + math.ceil(NEW_DOUBT_SHARE * (self.total_tokens - self._counted.tokens))
        share = next(share for samples, share in DOUBT_SHARES if self.counter.samples >= samples)
        return self.odd_tokens + math.ceil(share * self.total_tokens)

    def compute_answer_tokens(self, state: Budget) -> int:
        """Tokens an answer may take. Where nothing of the prompt was counted the doubt leaves it a share of the window:
        an answer that is cut off after a few words helps nobody. Odd signs are doubted more in the first request."""
        doubt = self.doubtful_tokens
        if self._counted is None:
            spare = max(0, int(state.window * (1 - UNCOUNTED_ANSWER_SHARE)) - self.total_tokens)
            doubt = min(doubt, spare if self.counter.samples else spare + self.odd_tokens)
        return rules.compute_answer_tokens(state, self.total_tokens, doubt)

    def distrust(self) -> None:
        """The server counts more than we do, and did not say how much more."""
        self._short = min(MAX_SHORTFALL_RATIO, self._short * DISTRUST_RATIO)

    @property
    def message_tokens(self) -> int:
        return max(0, self.total_tokens - self.counter.convert_to_tokens(self.prefix_units))

    def mark_sent(self) -> None:
        """A request with everything counted so far goes out now."""
        extends = self._counted is not None and self._resumed is None  # a count of another process proves no cut
        self._sent = SentRequest(self.prefix_units, self.message_units, extends, doubt_units=self.doubt_units)

    def correct_sent_prefix(self, prefix_units: float) -> None:
        """The last request had another prefix than was counted on."""
        if self._sent is not None:
            self._sent = msgspec.structs.replace(self._sent, prefix_units=prefix_units, extends=False)
        self.set_prefix_units(prefix_units)

    def should_verify_count(self, reported: int) -> bool:
        """Whether the server reports so much less than was sent that an exact count is worth asking for."""
        if self._sent is None or reported <= 0:
            return False
        return (
            self.counter.convert_to_tokens(self._sent.prefix_units + self._sent.message_units) > DOUBT_RATIO * reported
        )

    def observe_usage(self, usage: Usage, exact: int | None = None, *, said_so: bool = False) -> PromptTruncated | None:
        """Learn from the server's count of the last request; the event when it proves that the prompt was cut.

        `exact` is a count of this very prompt, rendered; `said_so` means the server itself reported the cut.
        """
        sent, reported = self._sent, usage.prompt_tokens
        if sent is None:
            return None
        if said_so or self._proves_truncation(sent, reported, exact):
            return PromptTruncated(sent_tokens=max(exact or 0, self.total_tokens), read_tokens=max(0, reported))
        amount = sent.prefix_units + sent.message_units
        if reported <= 0:
            self.counter.trust_estimate()
        if not PLAUSIBLE_TOKENS_PER_UNIT[0] <= reported / max(1.0, amount) <= PLAUSIBLE_TOKENS_PER_UNIT[1]:
            self._unsure = True
            return None
        self.counter.learn(amount, reported)
        self._measure_shortfall(amount, reported)
        self._counted = CountedPrompt(
            tokens=reported,
            prefix_units=sent.prefix_units,
            message_units=sent.message_units,
            doubt_units=sent.doubt_units,
        )
        self._unsure, self._resumed = False, None
        self._last_counted = amount, reported
        self.most_read = max(self.most_read, reported)
        return None

    def _proves_truncation(self, sent: SentRequest, reported: int, exact: int | None) -> bool:
        """Less was read than an exact count says, or than of an earlier request which this one extends.

        Far less is no proof: some servers leave out what they had in their cache."""
        if reported <= 0:
            return False
        if exact is not None and exact > reported * TRUNCATION_PROOF_RATIO:
            return True
        earlier = self._counted
        if sent.extends and earlier is not None and MIN_TRUNCATED_RATIO * earlier.tokens <= reported < earlier.tokens:
            return True
        return self._is_plateau(sent, reported)

    def _is_plateau(self, sent: SentRequest, reported: int) -> bool:
        """Whether the count stands still while prompts grow: the server reads so much, and cuts the rest silently."""
        if self._counted is None or not sent.extends:
            return self._is_repeated(sent, reported)
        grown = self.counter.convert_to_tokens(max(0.0, sent.message_units - self._counted.message_units))
        return grown >= MIN_PLATEAU_TOKENS and 0 <= reported - self._counted.tokens < PLATEAU_SHARE * grown

    def _is_repeated(self, sent: SentRequest, reported: int) -> bool:
        """Whether two quite different prompts were counted the same, to the token."""
        before = self._last_counted
        if before is None or before[1] != reported:
            return False
        amount = sent.prefix_units + sent.message_units
        return abs(amount - before[0]) * self.counter.factor >= MIN_PLATEAU_TOKENS
