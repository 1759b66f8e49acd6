"""How a request says that something fails, in one place: `crashes`, `stops with an error`, `won't start`. Pure."""

from __future__ import annotations

import re

from ollm.services.request_reading.reservations import is_supposed

_NOT = r"(?:does\s+not|doesn['’]t|will\s+not|won['’]t|cannot|can['’]t|can\s+not|refuses\s+to)\s+(?:even\s+)?"
_ERROR = r"(?:an?|the|this|some)\s+(?:\w+\s+){0,2}?(?:\w*error|\w*exception|traceback)\b"
_ALONE = (  # `breaks lines` and `throws away` are no failures
    r"(?=\s*(?:[.,;:!?)]|$)|\s+(?:when|whenever|if|on|with|for|as|because|after|while|since|in|and|now|once|during|but|right|at)\b)"
)
FAILING = (
    rf"(?:fails|crashes|(?<!line )(?<!page )breaks{_ALONE}|dies|blows\s+up|errors\s+out|raises|"
    rf"throws(?:{_ALONE}|(?=\s+(?:{_ERROR}|\w*(?:error|exception)s?\b)))|"
    r"is\s+(?:failing|red|broken|crashing)|has\s+a\s+syntax\s+error|"
    rf"(?:stops|ends|exits|aborts|quits|terminates|comes\s+back)\s+with\s+{_ERROR}|"
    rf"(?:gives|reports|produces)\s+(?:me\s+|us\s+)?{_ERROR}|"
    rf"{_NOT}(?:run|work|pass|start|finish|execute|compile|launch)\b)"
)
_SAID = re.compile(
    rf"((?:python3?|sh|bash|node|pytest)\s+[\w./-]+|[\w./-]+\.(?:py|sh|js))`?\s+(?:(?:always|now|still|just|currently)\s+)?{FAILING}",
    re.IGNORECASE,
)
_GOT = re.compile(
    r"\b(?:i|we)(?:['’]m|\s+am|['’]re|\s+are)?\s+(?:get|getting|see|seeing|have|got)\s+(?:(?:an?|this|the)\s+)?\w*(?:error|exception|traceback)\b"
    r"(?:[^.;\n]|\.(?=\w)){0,60}?\s(?:from|in|with|running|run|by|executing)\s+`?([\w./-]+\.(?:py|sh|js))\b",
    re.IGNORECASE,
)
_ASKED_WHY = re.compile(
    r"\b(?:why|what|how|where|which|who|reason|cause|explain|tell|show|say|review|look|only|if|not|no|yesterday|fixed|solved)\b|n['’]t\b",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(r"\s*(?:(?:my|our|the|your)\s+)?(?:(?:script|program|file)\s+)?`?$", re.IGNORECASE)
_TROUBLE = re.compile(rf"\bfind out why\b|\bfails?\b|\bcrash|\b(?!throws\b|raises\b|reports\b){FAILING}", re.IGNORECASE)
_SCRIPT = re.compile(r"(?<![\w./-])[\w./-]*\w\.(?:py|sh|js)(?![\w/-]|\.\w)")
_IT_FAILS = re.compile(
    r"(?<!that )(?<!so )(?<!if )(?<!when )(?<!until )(?<!unless )(?<!whether )(?<!before )(?<!where )(?<!once )"
    rf"\b(?:it|which|this|the\s+(?:script|program))\s+(?:(?:always|now|still|just)\s+)?{FAILING}",
    re.IGNORECASE,
)


def find_failing(request: str) -> list[str]:
    """The scripts and commands that are said to fail, as they are called."""
    got = [found[1] for found in _GOT.finditer(request) if not is_supposed(request, found.start())]
    return got + [found[1].strip() for found in _SAID.finditer(request) if not is_supposed(request, found.start())]


def has_trouble(request: str) -> bool:
    """Whether it says that anything fails, whatever it is."""
    return _TROUBLE.search(request) is not None


def find_only_failing(request: str) -> str:
    """The only script of a request that says of it that `it` fails."""
    scripts = dict.fromkeys(_SCRIPT.findall(request))
    return next(iter(scripts)) if len(scripts) == 1 and _IT_FAILS.search(request) else ""


def is_complaint(request: str) -> bool:
    """Whether it says that a script fails, and nothing else: it is to be mended then. `b.py crashes when I run it??`"""
    said = next((found for pattern in (_SAID, _GOT) if (found := pattern.search(request))), None)
    if said is None or _ASKED_WHY.search(request) or is_supposed(request, said.start()):
        return False
    return _COMPLAINT.match(request[: said.start()]) is not None and not re.search(r"[.!?]\s+\w", request)
