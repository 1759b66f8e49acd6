"""Whether a request orders one thing in one place, and nothing that is to be run: then one change is all of it. Pure.

A small model that has done it goes on: it runs programs that nobody spoke of, or changes more.
"""

from __future__ import annotations

import re

from ollm.services.request_reading.plain_words import CHANGE_VERBS, split_sentences, strip_courtesy, strip_prohibition
from ollm.services.request_reading.wanted_files import NAMED_FILE

_ORDERS = re.compile(
    rf"\b(?:{'|'.join(CHANGE_VERBS)}|write|give|let|use|call|import|save|store|copy|tell|say|show|list|count|should|must|needs?\s+(?:to|an?))\b",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:and|then|also|both|every|everywhere|all|each|other|others|too|as\s+well|accordingly|so\s+that|because|since|which|whose)\b|;",
    re.IGNORECASE,
)
_RUNS = re.compile(
    r"\b(?:run|runs|execute|start|try|test|tests|tested|check|checks|verify|ensure|make\s+sure|works?|working|output|prints?|fail\w*|error|"
    r"crash\w*|broken|breaks?|bug|bugs|wrong|fix|mend|repair|correct|pass|passes|still)\b",
    re.IGNORECASE,
)
_STILL = re.compile(r"\b(?:must|should|has\s+to)\s+(?:still|go\s+on|keep)\b", re.IGNORECASE)
_THEN = re.compile(r"\b(?:then|afterwards|also|run|execute|test|tests|tell|show|say|print\s+it)\b|;", re.IGNORECASE)
_CHECKS = re.compile(r"(?:python3?|sh|bash|node|pytest)\b")
_THANKS = re.compile(
    r"\W*(?:thanks|thank\s+you|thx|cheers|please|pls)(?:\s+(?:a\s+lot|so\s+much|very\s+much|in\s+advance))?\W*",
    re.IGNORECASE,
)


def is_done_by(request: str, primed: str, command: str) -> bool:
    """Whether this command is the one that the words say in full, and they order nothing besides."""
    from ollm.services.request_reading.answer_beginnings import CLOSED, COMMAND, begin_first_step

    words = _STILL.sub("", strip_prohibition(strip_courtesy(request)))
    told = len(_ORDERS.findall(words)) <= 1 and _THEN.search(words) is None and not _CHECKS.match(command)
    return told and begin_first_step(strip_courtesy(request), primed).removesuffix(CLOSED) == f"{COMMAND}{command}"


def is_single_order(request: str) -> bool:
    """Whether one change in one file is all that is asked."""
    words = strip_prohibition(strip_courtesy(request))
    sentences = [said for said in split_sentences(words) if re.search(r"\w", said) and not _THANKS.fullmatch(said)]
    if len(sentences) != 1 or _MORE.search(words) or _RUNS.search(words):
        return False
    return len(set(NAMED_FILE.findall(words))) == 1 and len(_ORDERS.findall(words)) == 1
