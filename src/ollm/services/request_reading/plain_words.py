"""A request without its courtesies, and whether it forbids changes. Pure: words in, words out."""

from __future__ import annotations

import re

WORDS_WANTED = (
    r"(?:in|on|at|to|from|by|for|with|of|until|since|under) (?:which|what|whom|whose)|"
    r"(?:please )?(?:keep in mind|bear in mind|remember that|note that)|"
    r"(?:give|name|suggest)(?: me| us)? (?:(?:an?|the|some|\d+|two|three|four|five|ten) )?(?:\w+ )?"
    r"(?:names?|examples?|ideas?|reasons?|ways?|words?|titles?|options?|tips?)"
)
_COURTESY = re.compile(
    r"^\s*(?:(?:hi|hello|hey|ok|okay)\b(?: there)?[,!.]?\s+)?"
    r"(?:(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to|i (?:want|need) you to|"
    r"kannst du(?: bitte)?|könntest du(?: bitte)?|bitte|peux-tu|pourrais-tu|puedes|podrías)\s+",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\b(?:do not|don't|dont|without|never|not)\s+(?:actually\s+)?"
    r"(?:chang|edit|modify|touch|writ|delet|remov|alter)(?:e|ing|ting)?\s+"
    r"(?:it\b|them\b|any(?:thing\b(?:\s+else\b)?|\s+(?:of\s+the\s+)?(?:files?|code)\b)|(?:the|my)\s+(?:files?|code)\b|files\b|code\b)|"
    r"\b(?:change|modify|touch|edit|write|delete)\s+nothing\b(?:\s+else\b)?",
    re.IGNORECASE,
)


def strip_courtesy(request: str) -> str:
    """`Could you please rename …` as `rename …`; a question mark that only belonged to the courtesy goes with it."""
    plain = _COURTESY.sub("", request, count=1)
    return plain if plain == request else re.sub(r"\?\s*$", ".", plain)


def strip_prohibition(request: str) -> str:
    """What is asked besides: of `Set x to 1. Change nothing else.` the first sentence."""
    return _FORBIDS.sub("", request)


def forbids_change(request: str) -> bool:
    """Whether it says that something is to stay as it is: all of it, where no change is asked for besides."""
    return _FORBIDS.search(request) is not None
