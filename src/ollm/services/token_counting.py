"""Token estimates by the kinds of characters in a text, times a factor learned from exact counts.

Estimates are in *units*, the tokens of an average tokenizer. The factor converts units to tokens of one model. Sums of
units stay valid when the factor changes, so a long context is never counted again.
"""

from __future__ import annotations

import math
import string
from collections import Counter, OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

import msgspec

from ollm.domain.lazy import compile_late
from ollm.domain.messages import PromptMessage
from ollm.domain.tools import ToolSchema

Number = TypeVar("Number", int, float)

MESSAGE_UNITS = 4.0  # A chat template adds role and turn markers.
RESULT_UNITS = 5.0  # A chat template adds markers around a result.
CALL_UNITS = 9.0  # A chat template adds markers around a call.
TOOLS_UNITS = 80.0  # A chat template explains calls if there are tools.
SCHEMA_UNITS = 7.4  # A chat template adds markers around each tool.
SCHEMA_SHARE = 0.835  # Words common to all schemas are single tokens.
IMAGE_UNITS = 800.0
MAX_CACHED_TEXTS = 8192
MIN_FACTOR, MAX_FACTOR = 0.4, 4.0
STEADY_SAMPLES = 8  # Later samples weigh at most one part in this many.

_WORD = compile_late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_BLANKS = compile_late(r" [ \t]+|\t[ \t]+|\n[\n \t]*")
_NOT_ASCII = compile_late(r"[^\x00-\x7f]")
_CONTROL = bytes((*range(9), *range(11, 32), 127))
_SHAPES = bytes(97 if 97 <= code < 123 else 65 if 65 <= code < 91 else 32 for code in range(256))


def estimate_units(text: str) -> float:
    """Estimate one text in units, before the factor."""
    plain = text.encode("ascii", "replace")
    shapes = Counter(plain.translate(_SHAPES).split())
    words = sum(times * _estimate_letters(shape) for shape, times in shapes.items())
    digits = 0.95 * _count_bytes(plain, b"0123456789")
    punctuation = 0.75 * sum(_count_runs(text, mark) for mark in string.punctuation if mark in text)
    blanks = float(len(_BLANKS.findall(text)))
    odd = float(_count_bytes(plain, _CONTROL))
    others = 0.0 if text.isascii() else sum(map(_estimate_character, _NOT_ASCII.findall(text)))
    return words + digits + punctuation + blanks + odd + others


@lru_cache(maxsize=4096)
def _estimate_letters(shape: bytes) -> float:
    """Estimate letters in a row, given as `A` for capitals and `a` for the others: `AaaaAaaa` is two words."""
    return sum(1 + max(0, len(word) - 6) / 4 for word in _WORD.findall(shape.decode()))


def _count_bytes(text: bytes, wanted: bytes) -> int:
    return len(text) - len(text.translate(None, wanted))


def _count_runs(text: str, mark: str) -> int:
    """Count how often a character occurs, repetitions in a row once."""
    between = text.split(mark)
    return len(between) - 1 - between[1:-1].count("")


@lru_cache(maxsize=16_384)
def _estimate_character(character: str) -> float:
    """Estimate a character: part of a token for European letters, about one for common ideographs, its bytes for rare
    characters."""
    code = ord(character)
    if code < 0x0600:
        return 0.5
    if code < 0x2000:
        return 0.9
    if code >= 0x10000:
        return 1.1 if 0x1F000 <= code < 0x20000 else 2.9  # Emoji cost less than rare ideographs.
    if 0x4E00 <= code < 0xA000:
        return 0.9 if _is_everyday(character) else 1.9
    if 0xAC00 <= code < 0xD7B0:
        return 1.2
    return 1.0 if code < 0x3000 else 0.85 if code < 0x3400 or code >= 0xFF00 else 2.4


def estimate_doubt_units(text: str) -> float:
    """Estimate how far a text may exceed its estimate if the vocabulary lacks its characters: at most its bytes."""
    return 0.0 if text.isascii() else sum(map(_estimate_character_doubt, _NOT_ASCII.findall(text)))


@lru_cache(maxsize=16_384)
def _estimate_character_doubt(character: str) -> float:
    most = len(character.encode(errors="replace"))
    likely = most if most > 3 or not _is_everyday(character) else 2.0
    return max(0.0, likely - _estimate_character(character))


def _is_everyday(ideograph: str) -> bool:
    """Return True for the 6,763 characters of GB 2312, which vocabularies usually contain."""
    try:
        ideograph.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


class TokenCounter:
    """Counts tokens for one model. Each text is estimated once; exact counts from the server are cached."""

    def __init__(self, factor: float = 1.0, samples: int = 0) -> None:
        self._units: OrderedDict[str, float] = OrderedDict()
        self._exact: OrderedDict[str, int] = OrderedDict()
        self.calibrate(factor, samples)

    def calibrate(self, factor: float, samples: int) -> None:
        """Set a model's known factor and the number of exact counts behind it."""
        self.factor = _bound_factor(factor)
        self.samples = max(0, samples)
        self._exact.clear()

    def count_units(self, text: str) -> float:
        known = self._units.get(text)
        if known is not None:
            self._units.move_to_end(text)
            return known
        return _remember(self._units, text, estimate_units(text))

    def count_text(self, text: str) -> int:
        exact = self._exact.get(text) if self._exact else None
        return math.ceil(self.count_units(text) * self.factor) if exact is None else exact

    def count_message_units(self, message: PromptMessage) -> float:
        called = sum(
            self.count_units(call.name) + self.count_units(_encode_json(call.arguments)) + CALL_UNITS
            for call in message.calls
        )
        pictures = IMAGE_UNITS * len(message.images)
        named = self.count_units(message.tool_name) if message.tool_name else 0.0
        framed = RESULT_UNITS if message.role == "tool" else 0.0
        return (
            MESSAGE_UNITS
            + self.count_units(message.content)
            + (self.count_units(message.thinking) if message.thinking else 0.0)
            + called
            + pictures
            + named
            + framed
        )

    def count_message(self, message: PromptMessage) -> int:
        return self.convert_to_tokens(self.count_message_units(message))

    def count_messages(self, messages: Iterable[PromptMessage]) -> int:
        return sum(map(self.count_message, messages))

    def count_schemas(self, tools: Iterable[ToolSchema]) -> int:
        """Count the tokens of the tool list of every request, including what a chat template adds around it."""
        return self.convert_to_tokens(self.count_schema_units(tools))

    def count_schema_units(self, tools: Iterable[ToolSchema]) -> float:
        """Count the same in units."""
        units = [self.count_units(_encode_json(msgspec.to_builtins(tool))) for tool in tools]
        return TOOLS_UNITS + SCHEMA_SHARE * sum(units) + SCHEMA_UNITS * len(units) if units else 0.0

    def count_schema_texts(self, tools: Iterable[ToolSchema]) -> int:
        """Count the tokens of the schemas alone."""
        return sum(self.count_text(_encode_json(msgspec.to_builtins(tool))) for tool in tools)

    def convert_to_tokens(self, amount: float) -> int:
        """Convert units to tokens of this model, rounded up."""
        return math.ceil(amount * self.factor)

    def remember(self, text: str, exact: int) -> None:
        """Remember the server's exact count of this text."""
        if exact > 0:
            _remember(self._exact, text, exact)

    def learn(self, amount: float, exact: int) -> None:
        """Move the factor towards the exact count of a whole prompt of `amount` units."""
        if amount <= 0 or exact <= 0:
            return
        self.samples += 1
        weight = 1 / min(self.samples, STEADY_SAMPLES)
        self.factor = _bound_factor(self.factor + weight * (exact / amount - self.factor))

    def trust_estimate(self) -> None:
        """Trust the estimate as one sample, because the server accepted a prompt without counting it."""
        self.samples = max(1, self.samples)


def _bound_factor(factor: float) -> float:
    return min(MAX_FACTOR, max(MIN_FACTOR, factor)) if math.isfinite(factor) else 1.0


def _encode_json(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _remember(cache: OrderedDict[str, Number], key: str, value: Number) -> Number:
    cache[key] = value
    if len(cache) > MAX_CACHED_TEXTS:
        cache.popitem(last=False)
    return value
