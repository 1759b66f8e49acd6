"""What kind of answer a question asks for (a time, an amount, a person, a place), and texts that hold one."""

from __future__ import annotations

import re

_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_WEEKDAYS = "mon|tues|wednes|thurs|fri|satur|sun"
_UNITS = "milliseconds?|ms|seconds?|minutes?|hours?|days?|weeks?|months?|years?"
_COUNTED = "one|two|three|four|five|six|seven|eight|nine|ten|every|a"
_TIME = re.compile(
    rf"\b(?:\d{{1,2}}:\d\d|\d{{4}}-\d\d|(?:{_MONTHS})|(?:{_WEEKDAYS})days?|\d[\d.,]*\s?(?:{_UNITS}|[ap]m)|"
    rf"(?:{_COUNTED}) (?:{_UNITS})|noon|midnight|night(?:ly)?|daily|weekly)\b"
    r"|[0-9０-９一二三四五六七八九十]+(?:時|点|日|月|年|分|秒)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|hundred|thousand|once|twice|half)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"(?<=[a-z,;:@(] )[A-Z][a-z]+\b|\B@\w+|\bteam\b|さん|先生|^[A-Z][a-z]+ (?:is|has|wants|owns|signs|reviews)"
)
_PLACE = re.compile(r"\w/|/\w|\w\.\w|\b[a-z]+-[a-z]+\b|\b(?:folder|bucket|host|server|branch|table|directory|queue)\b")

_ASKS_TIME = r"\b(?:when|how long|deadline|expires?|what (?:time|day|hour|date|month))\b|いつ|什么时候|何时|几点"
_ASKS_AMOUNT = (
    r"\bhow (?:many|much|often|fast|big|large|far|old|high|deep)\b|多少|几|いくつ|いくら|分辨率|"
    r"\b(?:number|size|rate|limit|version|port|digits?|status|code|ip|percentage|resolution)\b"
)
_ASKS_PERSON = r"\b(?:who|whom|whose)\b|谁|誰"
_ASKS_PLACE = r"\bwhere\b|\b(?:which|what) (?:file|folder|directory|path|url|host|address|branch|server)\b|哪里|どこ"
# How a question is put, and what its answer then looks like.
_KINDS = tuple(
    (re.compile(asked), answer)
    for asked, answer in (
        (_ASKS_TIME, _TIME),
        (_ASKS_AMOUNT, _AMOUNT),
        (_ASKS_PERSON, _PERSON),
        (_ASKS_PLACE, _PLACE),
    )
)


def find_answer_patterns(question: str) -> list[re.Pattern[str]]:
    """What an answer to this looks like; nothing where the question does not tell."""
    asked = question.casefold()
    return [pattern for sign, pattern in _KINDS if sign.search(asked)]
