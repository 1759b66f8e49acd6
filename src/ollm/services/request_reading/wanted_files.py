"""The files that a request wants changed or made, as far as its words say so without doubt. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.services.request_reading.asked_changes import CREATED, WRITTEN_TO, asks_for_change
from ollm.services.request_reading.plain_words import (
    CHANGE_VERBS,
    FILE_NAME,
    has_file_ending,
    is_kept,
    split_sentences,
)

NAMED_FILE = re.compile(rf"(?<![\w./-])`?({FILE_NAME})`?(?![\w/-])")
_LISTED = rf"`?(?:{FILE_NAME})`?(?:(?:\s*,\s*(?:and\s+)?(?:in\s+)?|\s+and\s+(?:in\s+)?)`?(?:{FILE_NAME})`?)*"
_CHANGED_IN = re.compile(
    rf"(?:\(|\b(?:in|of|to|from|into|fix|edit|update|change|repair|mend|correct|sort)\s)\s*(?:(?:the|a)\s+)?(?:new\s+)?(?:files?\s+)?({_LISTED})",
    re.IGNORECASE,
)
_CHANGE_VERB = re.compile(rf"\b(?:{'|'.join(CHANGE_VERBS)}|give|let|comment|use|order|get\s+rid)\b", re.IGNORECASE)
_CALLED = re.compile(
    rf"(?:\b(?:called|named|(?:call|name)\s+it)|\b(?:an?|another)\s+(?:new\s+|small\s+|little\s+)?(?:\w+\s+)?(?:script|file|module|program|page))"
    rf"\s+`?({FILE_NAME})`?",
    re.IGNORECASE,
)
_ORDERS = re.compile(r"\s*(?:please\s+)?(?:write|add|create|implement|define|make)\b", re.IGNORECASE)
_TESTED = re.compile(
    rf"\b(?:an?|some|two)\s+(?:unit\s+|small\s+)?tests?\s+(?:for\s+(?:[\w()]+\s+){{1,3}})?(?:in|into|to)\s+`?({FILE_NAME})`?",
    re.IGNORECASE,
)
_READS = re.compile(
    r"\s*(?:please\s+)?(?:count|list|sum|add\s+up|compute|calculate|read|take|get|search|collect|grep|copy|summari[sz]e|describe|explain)\b"
)
_REARRANGES = re.compile(
    r"\s*(?:please\s+)?(?:sort|order|reverse|shuffle|number|remove|delete|drop|swap|deduplicate|uppercase|lowercase|capitali[sz]e|"
    r"trim|indent|rearrange|reorder)\b"
)
_MORE = re.compile(rf"(?:\s*,\s*(?:and\s+)?|\s+and\s+)`?({FILE_NAME})`?(?!\w)")
_MADE_OF = re.compile(
    r"\s*(?:please\s+)?(?:convert|turn|transform|take|get|export|reverse|sort|extract|filter|split|translate|format|deduplicate|"
    r"uppercase|lowercase|summari[sz]e)\b",
    re.IGNORECASE,
)
_BY_HAND = re.compile(
    r"\W*(?:\w+\s+)?(?:write|put|create|make|add)\b(?!\.\w)(?!.*\b(?:output|results?|lines?|prints?|copy)\b)",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\bsame\b[^,.;]*\bas\s+(?:[^,.;]*\s)?$|\b(?:as|like|unlike)\s+(?:it\s+is\s+|is\s+|was\s+|done\s+|the\s+one\s+|that\s+|those\s+|"
    r"(?:i|we|you|they)\s+[^,.;]*)?$"
)
_EXPECTS = re.compile(
    r"\s*(?:in\s+\S+\s+)?(?:fix|repair|mend|correct|change|update|edit|remove|delete|drop|sort|bump|raise|lower)\b"
    r"(?!.*\b(?:to|into|as)\s+(?:a\s+|the\s+)?new\b)",
    re.IGNORECASE,
)
CODE = (".py", ".js", ".ts", ".sh", ".go", ".rs", ".java", ".c", ".cpp", ".rb", ".php")


def find_sources(request: str, made: Collection[str]) -> set[str]:
    """Files of data that others are made of: `Reverse a.txt and save it as b.txt`."""
    sentences = [said for said in split_sentences(request) if _MADE_OF.match(said)]
    named = {name for said in sentences if any(new in said for new in made) for name in NAMED_FILE.findall(said)}
    return {name for name in named if name not in made and not name.endswith(CODE)}


def find_wanted_files(request: str) -> list[str]:
    """The files that must be changed or made, as far as the words say so without doubt."""
    wanted: list[str] = []
    if not asks_for_change(request):
        return wanted
    parts = (part for said in split_sentences(request) for part in re.split(r",?\s+(?:and\s+)?then\s+", said))
    for sentence in parts:
        if sentence.endswith("?"):
            continue
        if _CHANGE_VERB.search(sentence):
            for found in _CHANGED_IN.finditer(sentence):
                wanted += [name for name in NAMED_FILE.findall(found[1]) if _is_target(sentence, found.start())]
        made = [found for pattern in (WRITTEN_TO, CREATED, _CALLED) for found in pattern.finditer(sentence)]
        wanted += [name for found in made if " copy of " not in found[0] for name in _list_made(sentence, found)]
        wanted += [found[1] for found in _TESTED.finditer(sentence) if _ORDERS.match(sentence)]
    return [name for name in dict.fromkeys(wanted) if has_file_ending(name) and not is_kept(name, request)]


def _list_made(sentence: str, found: re.Match[str]) -> list[str]:
    """The file, and those that follow it: `create a.txt, b.txt and c.txt`."""
    names, place = [found[1]], found.end()
    while more := _MORE.match(sentence, place):
        names.append(more[1])
        place = more.end()
    return names


def find_made_files(request: str) -> list[tuple[str, int]]:
    """New files that are written by hand, in their order, and where the words that say so begin."""
    founds = [
        found
        for pattern in (CREATED, _CALLED, WRITTEN_TO)
        for found in pattern.finditer(request)
        if pattern is not WRITTEN_TO or _BY_HAND.match(found[0])
    ]
    return [(found[1], found.start()) for found in sorted(founds, key=lambda found: found.start())]


def find_changed_files(request: str) -> list[str]:
    """Those of them that are to be there already."""
    founds = [found for pattern in (WRITTEN_TO, CREATED, _CALLED) for found in pattern.finditer(request)]
    made = {name for found in founds for name in _list_made(request, found)}
    return [name for name in find_wanted_files(request) if name not in made]


def is_expected(request: str, name: str) -> bool:
    """Whether a file must be there already: nothing is fixed in a file, or removed from one, that is not."""
    said = [sentence for sentence in split_sentences(request) if name in sentence]
    return bool(said) and name in find_changed_files(request) and all(map(_EXPECTS.match, said))


def _is_target(sentence: str, place: int) -> bool:
    """`from a.py` is changed when something moves away from it, and otherwise only read; `as in a.py` is an example."""
    word = sentence[place:].split(maxsplit=1)[0].lower()
    before = sentence[:place].lower()
    if _COMPARED.search(before):
        return False
    last = re.split(r"\b(?:and|then)\s+|[,:]\s+", before)[-1]
    if re.search(r"\b(?:copy|backup|rid)\s+$", before) or _READS.match(last):
        return False
    if re.search(r"\b(?:lines?|rows?|numbers?|column|output|contents?|results?)\s+(?:\w+\s+){0,3}$", before):
        return _REARRANGES.match(before) is not None
    return word != "from" or re.match(r"\s*(?:move|remove|delete|drop|extract)\b", before) is not None
