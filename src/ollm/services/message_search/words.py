"""Words for looking things up: those without meaning in a question, and those of this trade that mean the same."""

from __future__ import annotations

from functools import lru_cache

_PLAIN = (
    "a about after again all also am an and any anything are as at be because been before being between "
    "both but by can could did do does doing done during each else ever every for from get give given go "
    "had has have having he her here hers him his how i if in into is it its itself just know last let "
    "like make many me mention mentioned might more most much must my name need no nor not now of off "
    "often on once one only or other our ours out over own please put said same say see shall she should "
    "so some somebody someone something such supposed tell than that the their theirs them then there "
    "these they thing things this those through thus to told too under until up use used uses using very "
    "want was we were what whatever when where whether which while who whom whose why will with within "
    "without would you your yours "
)
STOP_WORDS = frozenset(_PLAIN.split())

_GROUPS = (
    "settings setting config configuration configured configure options preferences",
    "port socket listen listens listening serve serves endpoint address",
    "owner owns responsible maintainer charge contact person ask",
    "rows records entries items lines",
    "limit maximum max most cap bound ceiling",
    "variable environment env",
    "token secret key password credential credentials passphrase",
    "commit change patch revision sha hash fix",
    "fixed repaired solved resolved corrected mended",
    "bug defect error fault problem issue failure crash",
    "path file location place directory folder live lives stored located",
    "deadline due date until day",
    "decided decision agreed chose chosen settled",
    "version release",
    "server host machine node box",
    "database db store storage schema",
    "timeout wait seconds delay",
    "test tests check checks suite",
    "branch head line",
    "delete remove drop erase clear",
    "create make add new",
    "start begin launch boot run",
    "stop end halt kill quit shutdown",
    "slow latency speed performance fast quick",
    "user customer client account",
    "deploy deployment release rollout ship",
    "region zone datacenter location",
    "colour color theme",
    "bucket container storage",
    "url link address site page",
    "folder directory dir",
    "function method procedure routine",
    "library package dependency module",
    "size length amount number count quantity",
    "memory ram",
    "disk drive volume",
    "backup snapshot copy",
    "log logs logging output trace",
    "name called title label",
    "update upgrade refresh",
    "command instruction invocation",
    "cost price budget money",
    "team group people colleagues",
    "meeting call appointment",
)


SUFFIXES = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ness",
    "ions",
    "ion",
    "ies",
    "ers",
    "er",
    "ed",
    "es",
    "s",
    "e",
    "y",
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without the ending that only grammar asks for."""
    if not word.isascii() or any(map(str.isdigit, word)):
        return word
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def _group_meanings() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS:
        stems = dict.fromkeys(stem(word) for word in group.split())
        for word in stems:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in stems if other != word))
    return {word: tuple(others) for word, others in found.items()}


MEANINGS = _group_meanings()
