"""Whether an order stands under a reservation: it depends on something, waits for a word, is forbidden, doubted or
taken back; and what is not to be run. Pure.

What a rule would do by itself is done only where nothing is left to be decided; else it is the model's to find out.
"""

from __future__ import annotations

import re

from ollm.services.request_reading.plain_words import FILE_NAME, strip_courtesy

SUPPOSED = re.compile(r"\b(?:if|when|whenever|unless|once|until|as\s+soon\s+as)\b", re.IGNORECASE)
KEEPS = r"\bkeep\s+(?:it|them|one|both)\b"  # where it is, although it was to go elsewhere
SUPPOSED_CHARS = 40  # before a name, in which the word for its condition stands
_OF_ONE = re.compile(r"\b(?:if|when|whenever|unless|once|until|in\s+case)\s+(?:the\s+(?:\w+\s+)?)?`?$", re.IGNORECASE)
_NOT = r"(?:do\s+not|don['’]t|dont|never|must\s+not|mustn['’]t|should\s+not|shouldn['’]t|without)"
_THAT = r"(?:it|that|this|them|so)"
_TAKEN_BACK = re.compile(
    rf"\bactually,?\s+(?:no\b|{_NOT}\b|leave\b|keep\b|forget\b|wait\b)|\bno,?\s+wait\b|\bwait,\s+no\b|\bnever\s*mind\b|"
    rf"\bforget\s+(?:{_THAT}|about\s+{_THAT})\b|\bscratch\s+that\b|\bon\s+second\s+thoughts?\b|"
    r"\b(?:just|only)\s+(?:kidding|joking|a\s+joke)\b|[.;,!?]\s+no(?=[,.;!]|\s*$)|\s[-–—]\s*no\b(?=[,.;!]|\s*$)|"
    rf"\b{_NOT}\s*[.!]*$|\b{_NOT}\s+(?:actually\s+)?do\s+{_THAT}\b|\bnot\s+(?:now|yet)\s*[.!]*$|\bnothing\s+yet\b|"
    rf"\b{_NOT}\s+(?:do|chang|edit|touch|apply|writ|delet|remov|mov|renam|run)\w*\s[^.;\n]*\byet\b|"
    r"\bor\s+(?:not|rather|is|are|was|would|should|shall|could|can)\b|\bdry[- ]run\b|\bask\s+me\b|"
    r"\bconfirm\s+(?:it\s+)?(?:first|before)\b|"
    r"\b(?:just|only)\s+(?:show|print|give|tell)\s+(?:me\s+|us\s+)?the\s+(?:diff|patch|commands?|changes?)\b|"
    r"(?:^|[.!]\s+)(?:is|are|was|were|does|did)\s+(?:it|that|this|they)\s*\?|\bwhat\s+do\s+you\s+think\b|\b(?:good|bad)\s+idea\b|"
    r"\b(?:is|was|would)\s+(?:that|this|it)\s+(?:be\s+)?(?:ok|okay|right|fine|safe|wise|correct)\b|"
    r"\b(?:explain|translate|rephrase)\s+the\s+(?:sentences?|lines?|words?|request)\s+above\b|"
    r"\b(?:these|those)\s+(?:are|were)\s+the\s+(?:lines|words|sentences)\b",
    re.IGNORECASE,
)
_RUN = r"(?:actually\s+|ever\s+)?(?:run(?:ning)?|execut(?:e|ing)|start(?:ing)?|launch(?:ing)?)\s+"
_RUNS_NOTHING = re.compile(
    rf"\b(?:{_NOT}|not)\s+(?:actually\s+)?(?:{_RUN}|do(?:ing)?\s+)"
    r"(?:it|that|this|them|any(?:thing| of| command)|the (?:commands?|scripts?|programs?|code)|commands)\b",
    re.IGNORECASE,
)
_NOT_RUN = re.compile(
    rf"\b{_NOT}\s+{_RUN}(?:the\s+)?(?:(?:script|program|file|tests?)\s+)?`?(?:(?:python3?|sh|bash|node|pytest)\s+)?"
    rf"(?:\./)?(?P<name>{FILE_NAME})",
    re.IGNORECASE,
)
_DONE = r"(?:delete|remove|erase|rename|move|copy|overwrite|replace)\b(?!\()"
_IF = r"(?:if|unless|in\s+case|provided|as\s+long\s+as)"
_TRIFLE = re.compile(  # a condition that whatever does it meets by itself
    r",?\s+if\s+(?:it\s+exists|they\s+exist|possible|present|necessary|needed|you\s+can|there\s+(?:is|are)\s+(?:one|any))\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\b(?:after|once|until|when|before|unless)\s+i\s+(?:say|said|tell|told|ok|okay|confirm|agree|approve|decide)\w*\b|"
    r"\b(?:but|and|please)\s+(?:ask|consult|check\s+with|confirm\s+with|wait\s+for)\s+(?:me|us)\b|"
    r"\b(?:ask|wait\s+for)\s+(?:me|us)\s+(?:first|before)\b|\b(?:wait\s+for|with)\s+my\s+(?:ok|okay|approval|permission|confirmation|go)\b|"
    r"(?:^|[.!;]\s+)(?:delete|remove|rename|move|run|execute)\s+\S+\s+(?:later|tomorrow|next\s+\w+)\b",
    re.IGNORECASE,
)
_RESERVED = re.compile(
    r"\bonly\s+(?:if|when|once|after)\b|\bunless\b|\bnot\s+yet\b(?!\s+(?:done|complete|finished))|"
    r"\b(?:after|once|until|when)\s+i\s+(?:say|said|tell|told|ok|confirm|agree|have)\w*\b|"
    r"\b(?:ask|consult|warn|check\s+with|confirm\s+with|wait\s+for)\s+(?:me|us)\b|\bask\s+(?:first|before)\b|"
    r"\b(?:my|our)\s+(?:ok|okay|approval|permission|confirmation|go(?:-ahead)?)\b|"
    r"\bbefore\s+(?:you\s+|doing\s+)?(?:delet|remov|eras|renam|mov|chang|overwrit)\w*\b|"
    rf"(?:^\s*|[.!?;,]\s+|\b(?:and|then|please)\s+)(?:{_DONE}|run\b|execute\b)\s+(?:\S+\s+){{1,6}}{_IF}\s|"
    rf"(?:^|[.!?;]\s+){_IF}\s(?:[^.!?;]|\.(?=\w))*?(?:,\s+|\bthen\s+|\w\s+){_DONE}",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(
    r"(?:(?<=[.!?;,]\s)|^\s*)(?:(?:please|but|and|then)\s+)*(?:do\s+not|don['’]?t|never|no\s+need\s+to|"
    r"(?:you\s+)?(?:must|should|may)\s*n[o'’]t)\s+(?!forget\b|hesitate\b|worry\b)(?:[^.!?;,]|\.(?=\w))*",
    re.IGNORECASE,
)


def is_reserved(request: str) -> bool:
    """Whether nothing of it is to be done at once and by rule."""
    words = _TRIFLE.sub("", strip_courtesy(request))
    return bool(_RESERVED.search(words) or _TAKEN_BACK.search(words)) or waits(words) or only_forbids(words)


def waits(words: str) -> bool:
    """Whether it is to be done only after another word: until then there is nothing but to look."""
    return _WAITS.search(words) is not None


def only_forbids(words: str) -> bool:
    """`Don't run b.py`: without what is forbidden nothing is left."""
    rest, count = _FORBIDDEN.subn("", words)
    return count > 0 and re.search(r"\w", rest) is None


def is_supposed(request: str, place: int) -> bool:
    """Whether what stands there is only spoken of as a case: `when a.py fails, …`"""
    return _OF_ONE.search(request[max(0, place - SUPPOSED_CHARS) : place]) is not None


def forbids_runs(request: str) -> bool:
    """Whether nothing is to be run."""
    return _RUNS_NOTHING.search(request) is not None


def may_run(command: str, request: str) -> bool:
    """Whether a command may be run that starts a program."""
    return not forbids_runs(request) and not runs_forbidden(command, request)


def runs_forbidden(command: str, request: str) -> bool:
    """Whether a command runs a file of which the request says that it is not to be run. It may read and change it."""
    names = {found["name"].rpartition("/")[2] for found in _NOT_RUN.finditer(request)}
    program = r"(?:^|[;&|(\n])\s*(?:\w+=\S+\s+)*(?:(?:python3?|sh|bash|node|pytest|source|\.)\s+(?:-\S+\s+)*)?"
    return any(re.search(rf"{program}(?:\S*/)?{re.escape(name)}(?![\w.-])", command) for name in names)
