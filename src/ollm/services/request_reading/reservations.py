"""Whether an order stands under a reservation: it depends on something, waits for a word, or is forbidden. Pure.

What a rule would do by itself is done only where nothing is left to be decided; else it is the model's to find out.
"""

from __future__ import annotations

import re

from ollm.services.request_reading.plain_words import strip_courtesy

_DONE = r"(?:delet|remov|eras|renam|mov|run|execut|copy|overwrit|replac)\w*"
_IF = r"(?:if|unless|in\s+case|provided|as\s+long\s+as)"
_RESERVED = re.compile(
    r"\bonly\s+(?:if|when|once|after)\b|\bunless\b|\bnot\s+yet\b|"
    r"\b(?:after|once|until|when)\s+i\s+(?:say|said|tell|told|ok|confirm|agree|have)\w*\b|"
    r"\b(?:ask|consult|warn|check\s+with|confirm\s+with|wait\s+for)\s+(?:me|us)\b|\bask\s+(?:first|before)\b|"
    r"\b(?:my|our)\s+(?:ok|okay|approval|permission|confirmation|go(?:-ahead)?)\b|"
    r"\bbefore\s+(?:you\s+|doing\s+)?(?:delet|remov|eras|renam|mov|chang|overwrit)\w*\b|"
    rf"\b{_DONE}\s+(?:\S+\s+){{1,6}}{_IF}\s|(?:^|[.!?;]\s+){_IF}\s(?:[^.!?;]|\.(?=\w))*\b{_DONE}",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(
    r"(?:(?<=[.!?;,]\s)|^\s*)(?:(?:please|but|and|then)\s+)*(?:do\s+not|don['’]?t|never|no\s+need\s+to|"
    r"(?:you\s+)?(?:must|should|may)\s*n[o'’]t)\s+(?!forget\b|hesitate\b|worry\b)(?:[^.!?;,]|\.(?=\w))*",
    re.IGNORECASE,
)


def is_reserved(request: str) -> bool:
    """Whether nothing of it is to be done at once and by rule."""
    words = strip_courtesy(request)
    return _RESERVED.search(words) is not None or only_forbids(words)


def only_forbids(words: str) -> bool:
    """`Don't run b.py`: without what is forbidden nothing is left."""
    return re.search(r"\w", _FORBIDDEN.sub("", words)) is None
