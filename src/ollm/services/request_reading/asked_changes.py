"""Whether a request asks for a change, sentence by sentence.

Where the words leave it open it is neither a change that is insisted on nor a question that forbids one. Pure: words
in, yes or no out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.services.request_reading.plain_words import (
    CHANGE_VERBS,
    FILE_NAME,
    WORDS_WANTED,
    split_sentences,
    strip_prohibition,
)
from ollm.services.request_reading.trouble_words import is_complaint

WRITE_VERBS = "write|save|store|put|record|note|create|make|generate|copy|export|dump|output"
_OFF = r"check\s+(?:(?!(?:whether|if|that|is|are|was|were)\b)\S+\s+){0,5}?off\b"  # a box
ASKING = re.compile(
    r"^\s*(?:what|which|who|whose|where|when|why|how|is|are|was|were|does|do|did|has|have|explain|describe|tell|say|show|"
    rf"list|count|find|read|summari[sz]e|print|(?!{_OFF})check|look at|review|compare|suggest|any idea|"
    rf"{WORDS_WANTED})\b",
    re.IGNORECASE,
)
_TOLD = (  # words that are wanted from the model and from no file
    r"(?:lists?|overview|summary|suggestions?|proposals?|plan|comparison|guess|jokes?|recommendations?|explanation|"
    r"description|sense|poem|haiku|story)"
)
_VERB = (
    rf"(?:(?:{'|'.join(verb for verb in CHANGE_VERBS if verb not in ('make', 'add', 'create', 'sort', 'move'))})"
    rf"|make(?!\s+(?:me\s+|us\s+)?(?:(?:an?|some|any|the|your|\d+|two|three)\s+)?(?:\w+\s+)?{_TOLD}\b|\s+no\b)"
    r"|add(?!\s+up\b|\s+\d+\s+(?:and|to|plus)\s+\d)|sort(?!\s+of\b)|move(?!\s+on\b)|comment\s+(?:out|in|(?:\S+\s+){1,6}?out)|get\s+rid\s+of|"
    rf"{_OFF}|cross\s+(?:\S+\s+){{0,5}}?(?:off|out)|"
    r"keep(?=\s+only\b)|order(?=\s+(?:the|all|its|them)\b)|let(?!\s+(?:me|us)\b)|use(?=.*\binstead\b)|give(?!\s+(?:me|us|an?|some|\d+|two|three)\b)"
    r"(?=(?:\s+\S+){1,9}?(?<!\bof)(?<!\bin)(?<!\bfor)\s+(?:an?|the\s+default|two|three|more|another|its)\s))"
    r"(?=\s+[\w`\"'*./~@#$-])"
)
_PREFACE = (
    r"(?:(?:please|now|then|next|also|just|only|simply|finally|first|afterwards|ok|okay|so|and|but|again|kindly|maybe),?\s+|"
    r"go\s+ahead(?:,?\s+and)?\s+|let(?:'s|s|\s+us)\s+|(?:you|we)\s+(?:should|must|need\s+to|have\s+to|ought\s+to)\s+|try\s+to\s+|"
    r"(?:i(?:'d|\s+would)\s+like|i\s+(?:want|need)|be\s+sure|make\s+sure|remember|don't\s+forget|feel\s+free|you\s+are|you're)"
    r"(?:\s+you)?\s+to\s+|(?:is|would)\s+(?:it|this)\s+(?:be\s+)?possible\s+to\s+|"
    r"(?:in|within|inside|for|on|at|from|under|with|if|when|where|after|before|once|instead\s+of|without)\b[^,.;?]*(?:\.\w[^,.;?]*)*,\s+|"
    r"in\s+\S+\s+){0,6}"
)
_ORDER = re.compile(rf"\s*{_PREFACE}{_VERB}", re.IGNORECASE)
_CLAUSE = re.compile(rf"(?:[,;:]|\s[-–]|\b(?:and|then|but|so|please))\s+{_PREFACE}{_VERB}", re.IGNORECASE)
_OBJECT = (
    r"\s+(?:it|them|that|this|these|those|the|an?|all|every|each|its|their|both|any|[`'\"]|"
    rf"(?:{FILE_NAME})|\w+\s+(?:to|in|into|from|by|with|as)\b)"
)
_AND = r"(?:\b(?:and|then)|[;,])\s+(?:(?:then|please|also)\s+)*"
_RESULT = (
    r"\s+(?:it|them|that|this|(?:the|its|their)\s+(?:\w+\s+)?(?:results?|numbers?|sum|total|output|answers?|names?|bugs?|errors?|"
    rf"problems?|mistakes?|faults?|count|value)\b|(?:{FILE_NAME})\b)"
)
_EDITED = "|".join(CHANGE_VERBS)
_NESTED = re.compile(r"\b(?:what|which|where|why|how|when|who|whether|if)\b", re.IGNORECASE)
_SUPPOSED = re.compile(r"\b(?:if|when|happen\w*|would|could|how|why|to)\b.*\band\s+then\b", re.IGNORECASE)
_NEEDED = re.compile(
    r"\b(?:needs?\s+(?:an?|to)|should|must|ought\s+to|has\s+to|have\s+to|(?:is|are)\s+supposed\s+to)\b"
    r"(?!\s+(?:know|review|discuss|check|understand|remember|decide|look|read|talk|think|note|be\s+aware)\b)",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"\s*(?:should|must|ought|need|you|he|she|they|people|everyone|everybody|someone|nobody|i\s+(?:should|must|need\s+to|have\s+to)|"
    r"we\s+(?:should|must|need\s+to|have\s+to)|if|when|because|since|as)\b",
    re.IGNORECASE,
)
_WISHED = re.compile(
    r"\s*(?:(?:it|that)(?:'d|\s+would)\s+|would\s+)be\s+(?:very\s+|really\s+)?(?:nice|good|great|cool|helpful|useful|better|lovely)\s+if\s+(?!you\b|i\b|we\b|some)|"
    r"\s*(?:i|we)(?:'d|\s+would)?\s+(?:like|want|need)\s+(?!to\b|you\b)(?:.*\bto\s+(?:be|say|print|have|return|show|use|become|start|end)\b|"
    r"an?\s+(?:new\s+)?(?:\w+\s+)?(?:function|method|class|file|script|test|flag|option|module|folder|page|\.\w+)\b)",
    re.IGNORECASE,
)
_AT_VERB = r"(?:^|[,;:.?!]\s+|\b(?:and|then|please|to|you|also|now|just|only)\s+|^in\s+\S+\s+)"
_A_FILE = r"(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?`?"
WRITTEN_TO = re.compile(
    rf"{_AT_VERB}(?:(?:copy|join|combine|concatenate|merge)\b(?:[^.;\n]|\.(?=\w)){{0,300}}?|"
    rf"(?:write|save|store|put|record|note|export|dump|output)\b(?:(?!\b(?:that|which|script|program|function)\b)(?:[^.;\n]|\.(?=\w))){{0,300}}?|(?:{WRITE_VERBS})\b[^.;\n]{{0,300}}?)"
    rf"\b(?:into|to|as|(?:in|at)(?!(?:(?!\band\b)(?:[^.;\n]|\.(?=\w))){{0,120}}\b(?:into|to|as)\s+{_A_FILE}(?:{FILE_NAME})))\s+"
    rf"{_A_FILE}((?:(?:\.\./)+|~?/)?(?:{FILE_NAME}))`?",  # also outside, where policy decides
    re.IGNORECASE,
)
CREATED = re.compile(
    rf"\b(?:create|write|make|generate|add)\s+(?:me\s+|us\s+)?(?:a\s+|an\s+|the\s+)?(?:new\s+)?"
    rf"(?:(?!(?:of|in|from|for|about|to|with|than|on|into|as|at|by|that|which|using|reads?)\b)\w+\s+){{0,3}}?`?({FILE_NAME})(?!\w)`?(?!\s+(?:faster|work|pass|run|print|return|executable)\b)",
    re.IGNORECASE,
)


def asks_for_change(request: str) -> bool:
    """Whether files are to be different afterwards, without doubt."""
    sentences = split_sentences(strip_prohibition(request))
    return any(map(_orders_file, sentences)) or _asks_for_edit(sentences) or is_complaint(request)


def asks_for_edit(request: str) -> bool:
    """Whether something that is there is to be different, and not only a file made."""
    return _asks_for_edit(split_sentences(strip_prohibition(request))) or is_complaint(request)


def _asks_for_edit(sentences: Sequence[str]) -> bool:
    if any(map(_orders_edit, sentences)):
        return True
    asked = any(sentence.endswith("?") or ASKING.match(sentence) for sentence in sentences)
    return not asked and any(map(_needs_change, sentences))


def says_how_it_should_be(sentence: str) -> bool:
    """`It should be true.`: behind a question this may be a wish."""
    return not sentence.endswith("?") and not ASKING.match(sentence) and _needs_change(sentence)


def _orders_edit(sentence: str) -> bool:
    """A verb in the place of an order: at the beginning, or after `and`, `then` or a comma."""
    if sentence.endswith("?"):
        return False
    if ASKING.match(sentence):
        return _goes_on(sentence, _EDITED)
    return bool(_ORDER.match(sentence) or _CLAUSE.search(sentence)) and not _is_told(sentence)


def _orders_file(sentence: str) -> bool:
    if sentence.endswith("?") or _is_told(sentence):
        return False
    if ASKING.match(sentence):
        return _goes_on(sentence, WRITE_VERBS)
    return bool(WRITTEN_TO.search(sentence) or CREATED.search(sentence))


def _goes_on(sentence: str, verbs: str) -> bool:
    """Whether an order follows what is asked: `count them and write the number …`, `find the bug and fix it`."""
    follows = _RESULT if _NESTED.search(sentence) else _OBJECT
    if re.search(rf"\band\s+then\s+(?:{verbs}){_OBJECT}", sentence, re.IGNORECASE) and not _SUPPOSED.search(sentence):
        return True
    return re.search(rf"{_AND}(?:{verbs}){follows}", sentence, re.IGNORECASE) is not None


def _is_told(sentence: str) -> bool:
    """`Write a summary of a.py`, `make a list of the functions in a.py`: words, unless it is said where they go."""
    told = rf"\s*{_PREFACE}(?:write|make|create|generate)\s+(?:me\s+|us\s+)?(?:an?|the|some)\s+(?:\w+\s+)?{_TOLD}\b"
    return re.match(told, sentence, re.IGNORECASE) is not None and not re.search(
        rf"\b(?:into|to|as|called|named)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?`?(?:{FILE_NAME})",
        sentence,
        re.IGNORECASE,
    )


def _needs_change(sentence: str) -> bool:
    """How something is to be: `withdraw should raise an error`, `I want the button to be red`."""
    if WISHED_WORDS.match(sentence):
        return False
    wished = _WISHED.match(sentence)
    return wished is not None or (_PEOPLE.match(sentence) is None and _NEEDED.search(sentence) is not None)


WISHED_WORDS = re.compile(rf"\s*(?:{WORDS_WANTED}|remember\b|note:|fyi\b)", re.IGNORECASE)
