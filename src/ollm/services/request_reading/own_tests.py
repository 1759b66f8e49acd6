"""A failing test of the model's own: the step for it, and the change that mends it. Pure.

Where code is to stay as it is and nothing is said of what it should do, a test of it holds what it does. Where the
request speaks of the values, or the code is new too, the model is told what came, and decides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from ollm.services.request_reading.plain_words import is_test
from ollm.services.request_reading.python_modules import parse_python
from ollm.services.request_reading.wanted_files import find_wanted_files
from ollm.services.request_reading.wrong_values import WrongValue, find_wrong_values

MAX_TOLD = 3
_MENDS = re.compile(
    r"\b(?:bugs?|fix\w*|mend\w*|repair\w*|reproduc\w*|regressions?|fail\w*|wrong\w*|broken|crash\w*|correct\w*|"
    r"test[- ]driven|tdd|red|bad|issues?)\b",
    re.IGNORECASE,
)
_SAYS_WHAT = re.compile(  # how the code is to behave; that the tests are to pass says nothing of it
    r"\b(?:should|must|has\s+to|have\s+to|ought\s+to|(?:checks?|checking|verif\w+|asserts?|make\s+sure|ensures?|proves?|shows?|tests?)"
    r"(?:\s+(?:that|whether|if)\b|\s*:))(?!\s+(?:(?:they|it|all|the|tests?|both)\s+){0,3}(?:all\s+)?(?:pass|run|succeed|work|be\s+green|are\s+green)\w*)",
    re.IGNORECASE,
)
_LACKS = re.compile(  # what may be asked of code that raises an error
    r"\b(?:empty|none|null|nothing|no(?!\s+(?:\w+\s+)?tests?\b)|not(?!\s+(?:yet\s+)?tested)|never|without|missing|unknown|invalid|absent|edge|corner|zero|negative|beyond|out\s+of|"
    r"errors?|exceptions?|rais\w+|throws?|reject\w*|refus\w*|default\w*)\b|"
    r"n't\b(?!\s+(?:yet\s+)?(?:tested|have\s+(?:any\s+|a\s+)?tests?)\b)",
    re.IGNORECASE,
)


def describe_own_test(
    command: str, changed: Sequence[str], before: Mapping[str, str], texts: Mapping[str, str], said: str
) -> str:
    """The step for a new test that this command ran and that expects other values than came; `said` is its output."""
    new = [name for name in changed if is_test(name) and name not in before and name in command and name in texts]
    wrong = find_wrong_values(said, texts[new[0]]) if len(new) == 1 else []
    if not wrong:
        return ""
    told = "; ".join(value.said for value in wrong[:MAX_TOLD])
    code = [name for name in changed if name.endswith(".py") and name not in new]
    return f"{command} fails: {told}" + (": mend it." if code else f". Now mend {new[0]}.")


def begin_own_test(request: str, path: str, text: str, told: str, outputs: Sequence[str]) -> str:
    """The change of a new test that makes it hold what the code does; empty where that is not plain."""
    wrong = find_wrong_values(outputs[-1], text) if outputs else []
    wrong = [value for value in wrong[:MAX_TOLD] if value.said in told and _is_settled(request, path, value)]
    pairs = "".join(_write_pair(text, value) for value in wrong)
    return f"{path}\n```diff\n{pairs}```\n" if pairs and " fails: " in told else ""


def begin_own_value(path: str, text: str, told: str, outputs: Sequence[str], earlier: Sequence[str]) -> str:
    """The line of a new test up to its value, where the code is of this turn too and one of the `earlier` messages told
    the model so: it decides on the value."""
    wrong = find_wrong_values(outputs[-1], text) if outputs else []
    value = next((value for value in wrong if value.begun and value.said in told), None)
    if value is None or not told.endswith(": mend it.") or not any(value.said in said for said in earlier):
        return ""
    line = next(line for line in text.splitlines() if line.strip() == value.line)
    return f"{path}\n```diff\n-{line}\n+{line[: len(line) - len(value.line)]}{value.begun.rstrip()}"


def _write_pair(text: str, value: WrongValue) -> str:
    """A line and the one in its place; nothing in its place where an error came, and what its test compares before that
    stays."""
    lines = text.splitlines()
    place = next(place for place, line in enumerate(lines) if line.strip() == value.line)
    line = lines[place]
    if value.mended:
        return f"-{line}\n+{line[: len(line) - len(value.line)]}{value.mended}\n"
    goes = value.raised and _is_last_of_several(text, value.line)
    return f"-{lines[place - 1]}\n-{line}\n+{lines[place - 1]}\n" if goes else ""


def _is_last_of_several(text: str, line: str) -> bool:
    """Whether the test of this line compared something else before."""
    if (tree := parse_python(text)) is None:
        return False
    lines = text.splitlines()
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    bodies = ([lines[part.lineno - 1].strip() for part in test.body] for test in tests)
    return any(line in body and any(map(_is_compared, body[: body.index(line)])) for body in bodies)


def _is_compared(line: str) -> bool:
    return line.startswith(("assert ", "self.assert"))


def _is_settled(request: str, path: str, value: WrongValue) -> bool:
    """Whether it is plain that the test is wrong, and not the code."""
    if _MENDS.search(request) or not is_test(path) or (_LACKS if value.raised else _SAYS_WHAT).search(request):
        return False
    if any(name.endswith(".py") and not is_test(name) for name in find_wanted_files(request)):
        return False
    values = [node.value for node in ast.walk(ast.parse(value.line)) if isinstance(node, ast.Constant)]
    return not any(_is_spoken_of(str(said), request) for said in values)


def _is_spoken_of(text: str, request: str) -> bool:
    """Whether a value is in the request; a letter only where it is in quotes."""
    quote = r"[\"'`]" if len(text) == 1 and text.isalpha() else ""
    named = rf"(?<!\w){quote}{re.escape(text)}{quote}(?!\w)"
    return bool(text.strip()) and re.search(named, request, re.IGNORECASE) is not None
