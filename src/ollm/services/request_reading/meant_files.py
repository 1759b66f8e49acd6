"""Files that a request means without naming them: those that define what it is about, or alone hold its words; the
modules of a test that fails; files that another one leads to. Pure: names and texts in, names out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Sequence

from ollm.providers.text_calls.definitions import find_definitions
from ollm.services.request_reading.plain_words import CHANGE_VERBS, is_test

MAX_SEARCHED_FILES = 60
MAX_SEARCHED_CHARS = 40_000  # of one file
MAX_MEANT = 2
MAX_LED = 3  # files that another one leads to
MAX_TINY_FILES = 6
MAX_TINY_CHARS = 2_400  # of all files of a project that is shown whole
MIN_STEM_CHARS = 4
DEFINED = 3.0  # how much more it says that a file defines a name than that it holds a word
NEAR_SHARE = 0.6  # of the best file's weight, for a second one to be shown too
_WORD = re.compile(r"[A-Za-z_][\w-]*\w")
_IMPORTS = re.compile(
    r"^\s*(?:from\s+\.*([\w.]+)\s+import|import\s+([\w.]+))|(?:from|require\()\s*['\"]\./([\w./-]+)['\"]", re.MULTILINE
)
_LEADS = re.compile(
    r"\b(?:another file|other file|third|names? an?|mentions|refers to|points to|leads to|follow)\b", re.IGNORECASE
)
_SEARCHES = re.compile(
    r"\b(?:(?:which|what|all|every|each|any)\s+(?:\w+\s+)?files?|where|everywhere|throughout|which line|"
    r"how many|count|number of)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(r"\b(?:the|our|my|this)\s+([A-Za-z][\w]{2,})\s+file\b", re.IGNORECASE)
_PATH = re.compile(r"[\w.-]*(?:/[\w.-]+)*\.[A-Za-z]\w*")
_TESTS = re.compile(r"\b(?:the|my|our|your)\s+(?:unit\s+)?tests?\b|^tests?\b", re.IGNORECASE)
_ABOUT_FILES = re.compile(
    r"\b(?:files|folders?|director(?:y|ies)|scripts?|modules?|rename|replace|everywhere|throughout)\b|"
    r"^\s*(?:in\s+)?(?:which|what)\s+file\b",
    re.IGNORECASE,
)
_COMMON = frozenset(
    (  # noqa: SIM905
        "the and that with from into this then file files line lines function class method value name run python which "
        "what when where there them they should have has does not are for its all every each print prints text folder "
        "script module section test tests number numbers constant parameter returns return called import fails find "
        "bug use using used how many much out was were will would end new old only other like instead please than "
        "greater less must could can you your want need here nothing else any some after before still work works "
        "also just now case gets get if is it be to of in on at by as or an do so no yes program code project error "
        "errors show tell me my we our but about between same way thing things one two three four five first last most "
        "more count list say read why who whose explain describe check mind possible sure thanks hello"
    ).split()
) | frozenset(CHANGE_VERBS)


def find_meant(request: str, names: Sequence[str], read: Callable[[str], str | None]) -> list[str]:
    """At most two files, the likelier first, for a request that names none."""
    words = _find_telling_words(request)
    if not (words or _TESTS.search(request)) or _SEARCHES.search(request):
        return []
    stems = [name for name in names if _stem(name) in words and len(_stem(name)) >= MIN_STEM_CHARS]
    if stems := stems or _find_called(request, names):
        return stems[:MAX_MEANT]
    texts = {
        name: text for name in names[:MAX_SEARCHED_FILES] if (text := read(name)) and len(text) <= MAX_SEARCHED_CHARS
    }
    weights = dict.fromkeys(texts, 0.0)
    for word in words:
        for name, weight in _weigh_word(word, texts).items():
            weights[name] += weight
    best = max(weights.values(), default=0.0)
    tests = [name for name in names if is_test(name)] if not best and _TESTS.search(request) else []
    if len(tests) == 1:
        return [*_find_modules(texts.get(tests[0], ""), names)[:MAX_LED], *tests]
    found = sorted(
        (name for name in weights if best and weights[name] >= NEAR_SHARE * best), key=lambda name: -weights[name]
    )
    return found if len(found) <= MAX_MEANT else []


def _find_called(request: str, names: Sequence[str]) -> list[str]:
    """The only file that `the compose file` or `the css file` may be."""
    words = {found.lower() for found in _CALLED.findall(request)}
    called = [name for name in names if words.intersection(re.split(r"[-_.]", posixpath.basename(name).lower()))]
    return called if len(called) == 1 else []


def find_tiny_project(request: str, names: Sequence[str], read: Callable[[str], str | None]) -> list[str]:
    """All files of a tiny project, for a request that names none of them and is not about files."""
    if len(names) > MAX_TINY_FILES or not _find_telling_words(request):
        return []
    if _ABOUT_FILES.search(request) or _PATH.search(request):
        return []
    texts = {name: read(name) for name in names}
    whole = all(text is not None for text in texts.values())
    return list(texts) if whole and sum(len(text or "") for text in texts.values()) <= MAX_TINY_CHARS else []


def _find_telling_words(request: str) -> set[str]:
    return {word for word in _WORD.findall(request) if len(word) > 2 and word.lower() not in _COMMON}


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]


def _weigh_word(word: str, texts: dict[str, str]) -> dict[str, float]:
    """How much a word speaks for each file: the more the fewer hold it, and most for the one that defines it."""
    stem = word[:-1] if word.endswith("s") and len(word) > MIN_STEM_CHARS - 1 else word
    pattern = re.compile(rf"(?<![\w]){re.escape(stem)}(?:s|es)?(?![\w])", re.IGNORECASE if word.islower() else 0)
    holding = [name for name, text in texts.items() if pattern.search(text)]
    defining = [
        name for name in holding if any(found.name == word for found in find_definitions(texts[name].splitlines()))
    ]
    weights = {name: 1 / len(holding) for name in holding if len(holding) <= max(2, len(texts) // 3)}
    return weights | (dict.fromkeys(defining, DEFINED) if len(defining) == 1 else {})


def find_led_to(
    request: str, named: Sequence[str], names: Collection[str], read: Callable[[str], str | None]
) -> list[str]:
    """The modules that the named tests import, where the request names nothing but tests; else the files that the named
    ones mention, where the request says that they do."""
    if named and all(map(is_test, named)):
        return [module for name in named for module in _find_modules(read(name) or "", names)][:MAX_LED]
    if not _LEADS.search(request):
        return []
    found: list[str] = []
    queue = list(named)
    while queue and len(found) < MAX_LED:
        mentioned = _PATH.findall(read(queue.pop(0)) or "")
        new = [name for name in names if name in mentioned and name not in named and name not in found]
        found += new
        queue += new
    return found[:MAX_LED]


def _find_modules(text: str, names: Collection[str]) -> list[str]:
    """The project's own files that a module imports."""
    stems = [(inside or module).replace(".", "/") or path for inside, module, path in _IMPORTS.findall(text)]
    wanted = {f"{stem}{ending}" for stem in stems for ending in ("", ".py", ".js", ".ts", "/__init__.py")}
    return [name for name in names if name in wanted or name.partition("/")[2] in wanted]
