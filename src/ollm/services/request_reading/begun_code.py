"""The first line of code that an answer begins with: the head of a function that is to be added, what a test imports.

A small model that is left to begin a file of code copies what is there, or writes the function into its test. Pure.
"""

from __future__ import annotations

import re

from ollm.providers.text_calls.definitions import find_definitions, list_defined_names
from ollm.services.request_reading.asked_places import AskedMethod, find_asked_methods, find_asked_places
from ollm.services.request_reading.asked_tests import NO_NEW_TEST, begin_new_test
from ollm.services.request_reading.plain_words import CHANGE_VERBS
from ollm.services.request_reading.shown_files import find_shown_text, list_shown_names
from ollm.services.request_reading.wanted_files import find_wanted_files

_PARAMETER = r"\*{0,2}[A-Za-z_]\w*(?:\s*=\s*[^,()]+)?"
_ORDER = re.compile(rf"\b(?:{'|'.join(CHANGE_VERBS)}|write|run|execute|need|want)\b", re.IGNORECASE)
_TEST = re.compile(r"(?P<path>test_(?P<module>\w+)\.py)\n```python\n")
_STEP = re.compile(r"Now change (?P<path>\S+?)(?: too)?\.$")
MIN_FILES = 2  # that are wanted, from which a model that is not tiny is begun the function too


def begin_new_function(request: str, primed: str, *, whole: bool = False) -> str:
    """The file and the head of the function that is asked for before anything else, in a file that was shown. `whole`:
    for a tiny model, also where this is all that is wanted."""
    if begun := begin_new_test(request, primed) or begin_new_method(request, primed, whole=whole):
        return begun
    name, path = next(iter(find_asked_places(request).items()), ("", ""))
    earlier = _ORDER.findall(request[: request.find(name)])
    if not name or len(earlier) != 1 or (not whole and len(find_wanted_files(request)) < MIN_FILES):
        return ""
    return _begin_head(request, name, path, primed) if path in list_shown_names(primed) else ""


def begin_new_method(request: str, primed: str, *, whole: bool = False) -> str:
    """The same for a method in a class that was shown."""
    method = next(iter(find_asked_methods(request)), None)
    earlier = _ORDER.findall(request[: request.find(method.name)]) if method else []
    if method is None or len(earlier) != 1 or (not whole and len(find_wanted_files(request)) < MIN_FILES):
        return ""
    return _begin_method(method, primed) if method.path in list_shown_names(primed) else ""


def begin_lacking_function(request: str, told: str) -> str:
    """The same, where the file that is to be changed next, as it was shown with the step, lacks the function."""
    step = _STEP.search(told)
    if step and NO_NEW_TEST.format(step["path"]) in told:
        return begin_new_test(request, told, first=False)
    methods = [method for method in find_asked_methods(request) if step and method.path == step["path"]]
    if begun := next(filter(None, (_begin_method(method, told) for method in methods)), ""):
        return begun
    lacking = (name for name, path in find_asked_places(request).items() if step and path == step["path"])
    heads = (_begin_head(request, name, step["path"] if step else "", told) for name in lacking)
    return next(filter(None, heads), "")


def _begin_method(method: AskedMethod, shown: str) -> str:
    """Its class and its head, where the class was shown without it."""
    text = find_shown_text(method.path, shown) or _find_excerpt(method.path, shown)
    head = re.search(rf"^class {re.escape(method.owner)}\b[^\n]*:$", text, re.MULTILINE)
    if head is None or not method.path.endswith(".py") or re.search(rf"\bdef {re.escape(method.name)}\b", text):
        return ""
    given = re.fullmatch(rf"(?:self\s*,?\s*)?({_PARAMETER}(?:\s*,\s*{_PARAMETER})*)?", method.parameters)
    parameters = f"self, {given[1]}" if given and given[1] else "self"
    open_head = "self" if not method.parameters else f"{parameters}):\n"
    return f"{method.path}\n```python\n{head[0]}\n    def {method.name}({open_head}"


def _begin_head(request: str, name: str, path: str, shown: str) -> str:
    text = find_shown_text(path, shown)
    if not path.endswith(".py") or not text or name in list_defined_names(text) or not _is_function(request, name):
        return ""
    given = re.search(rf"\b{re.escape(name)}\(({_PARAMETER}(?:\s*,\s*{_PARAMETER})*)\)", request)
    head = f"def {name}({given[1]}):\n" if given else f"def {name}("
    return f"{path}\n```python\n{head}"


def _is_function(request: str, name: str) -> bool:
    return re.search(rf"\b(?:class|method)\s+(?:called\s+|named\s+)?`?{re.escape(name)}\b", request) is None


def add_tested_import(begun: str, request: str, primed: str) -> str:
    """A beginning that is the name of a new test, with the import of what it tests."""
    test = _TEST.fullmatch(begun)
    if test is None or f"{test['module']}.py" not in list_shown_names(primed):
        return begun
    text = find_shown_text(f"{test['module']}.py", primed)
    outer = [found.name for found in find_definitions(text.splitlines()) if found.indent == 0]
    outer += [name for name, path in find_asked_places(request).items() if path == f"{test['module']}.py"]
    named = [name for name in dict.fromkeys(outer) if re.search(rf"\b{re.escape(name)}\b", request)]
    names = f"{', '.join(named)}\n" if named else ""
    return f"{begun}from {test['module']} import {names}"


def _find_excerpt(path: str, shown: str) -> str:
    """What was shown of a long file."""
    found = re.findall(
        rf"^{re.escape(path)} is long \(\d+ lines\)\. Parts of it:\n```\n(.*?)\n```", shown, re.MULTILINE | re.DOTALL
    )
    return found[-1] if found else ""
