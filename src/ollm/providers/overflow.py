"""The numbers in a server's refusal of a request that does not fit its window, whoever words it."""

from __future__ import annotations

import re
from typing import Any

from ollm.domain.struct import Data

MAX_SEARCHED_CHARACTERS = 8000
MIN_WINDOW_TOKENS = 512  # a smaller number in a refusal is about something else
NUMBER = r"(\d[\d,_]{0,12})"

# Each list is tried in order; the first pattern that matches says the number. `low` marks a lower bound.
COMPARED = rf"\({NUMBER} ?[>/] ?(?P<last>\d[\d,_]{{0,12}})\)"  # (9000 > 8192)
WINDOW_PATTERNS = (
    COMPARED,
    rf"\bn_ctx\W{{1,5}}{NUMBER}",
    rf"max_(?:model|seq|total|context)_(?:len\w*|tokens)\W{{1,4}}(?:is |of )?{NUMBER}",
    rf"{NUMBER} tokens? (?:>|exceeds?) (?:the )?(?P<last>\d[\d,_]{{0,12}})",
    rf"(?:context|model|sequence)[ _-](?:size|length|window|limit|len)[^\d>]{{0,40}}?{NUMBER}",
    rf"{NUMBER}(?:[ -]tokens?)? (?:maximum |max )?context[ _-](?:size|length|window|limit)",
    rf"must (?:be|have) (?:<=?|less than|at most|fewer than|no more than) {NUMBER}",
    rf"(?:maximum|limit)(?: input| prompt)?(?: length)?(?: is| of|:) {NUMBER}(?: tokens)?",
)
PROMPT_PATTERNS = (
    COMPARED.replace("?P<last>", ""),
    rf"\bn_prompt_tokens\W{{1,5}}{NUMBER}",
    rf"(?P<low>at least )?{NUMBER} (?:tokens? )?(?:in|from) the (?:input |prompt )?(?:messages|prompt|input)",
    rf"(?:contains?|has|have|with) (?P<low>at least )?{NUMBER} (?:input|prompt|message)?[ _]?tokens",
    rf"(?:request|inputs?|prompt|messages)['`]? \((?:total )?(?:length )?(?P<low>at least )?{NUMBER}(?: tokens)?\)",
    rf"(?:resulted in|(?:request|input|prompt)(?: is)? too (?:long|large):|given:) (?P<low>at least )?{NUMBER}",
    rf"keep the first {NUMBER} tokens",
    rf"(?<![=\d]){NUMBER} tokens? (?:>|exceeds?)",
)
ANSWER_PATTERNS = (
    rf"requested {NUMBER} (?:output|completion|new) tokens",
    rf"{NUMBER} (?:tokens? )?(?:in|for) the completion",
    rf"max_(?:completion_|new_|output_)?tokens\W{{1,3}}(?:is )?too large: {NUMBER}",
    rf"max_(?:completion_|new_|output_)?tokens\W{{1,3}}(?:is |of )?{NUMBER}",
    rf"{NUMBER} [`'\"]?max_(?:completion_|new_|output_)?tokens",
)


class OverflowNumbers(Data, frozen=True):
    """0 where the server did not say. `prompt_at_least`: the prompt has that many tokens or more."""

    window: int = 0
    prompt_tokens: int = 0
    prompt_at_least: bool = False
    answer_tokens: int = 0


def read_overflow_numbers(text: str) -> OverflowNumbers:
    """From the words of the error, or from the whole body written out."""
    searched = text[:MAX_SEARCHED_CHARACTERS]
    if len(searched) < len(text):
        searched = searched.rstrip("0123456789,_")  # a number that was cut in two says nothing
    window, _ = _find_number(WINDOW_PATTERNS, searched)
    prompt, at_least = _find_number(PROMPT_PATTERNS, searched)
    answer, _ = _find_number(ANSWER_PATTERNS, searched)
    if not answer and not (window and prompt):
        window, prompt = _compare_numbers(searched, window, prompt)
    return OverflowNumbers(
        window=window,
        prompt_tokens=prompt,
        prompt_at_least=at_least and prompt > 0,
        answer_tokens=answer if answer != window else 0,
    )


def _compare_numbers(text: str, window: int, prompt: int) -> tuple[int, int]:
    """Two numbers in words nobody listed: what was sent is the larger, what is taken the smaller."""
    digits = re.findall(rf"(?<![\w.-]){NUMBER}(?![\w-]|\.\d)", text)
    found = sorted({number for each in digits if (number := int(re.sub(r"[,_]", "", each))) >= MIN_WINDOW_TOKENS})
    if len(found) == 2 and window in (0, *found) and prompt in (0, found[1]):
        return found[0], found[1]
    return window, prompt


def _find_number(patterns: tuple[str, ...], text: str) -> tuple[int, bool]:
    for pattern in patterns:
        if found := re.search(pattern, text, re.IGNORECASE):
            named = found.groupdict()
            digits = named.get("last") or next(g for g in found.groups() if g and g[0].isdigit())
            return int(re.sub(r"[,_]", "", digits)), bool(named.get("low"))
    return 0, False


def write_out(value: Any) -> str:
    """A decoded body as text, for reading numbers wherever in it they are."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
