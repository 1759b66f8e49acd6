"""What a run that failed says: what came and what should have come, how far it got, what is to be mended. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection

from ollm.services.request_reading.plain_words import is_kept, is_test, split_sentences
from ollm.services.request_reading.wanted_files import NAMED_FILE, find_wanted_files
from ollm.services.request_reading.wanted_runs import find_first_command, find_red_tests
from ollm.services.request_reading.wrong_values import find_sides

MAX_VALUE_CHARS = 200
MAX_ASKED_CHARS = 400
MAX_WISHES = 3
_WISH = re.compile(r"\b(?:without|only|keep|not|must|should|never|use|using|instead)\b|n't\b", re.IGNORECASE)
MAX_LISTED_FILES = 20
_SCRIPT = re.compile(r"[\w./-]+\.(?:py|sh)\b")
_ASSERTED = re.compile(r"^[>\s]*(?P<line>(?:assert|self\.assert\w+)\b.+)$", re.MULTILINE)
_CAME = re.compile(r"^E\s+(?:AssertionError: )?assert (?P<came>.+?) == ", re.MULTILINE)
_UNEQUAL = re.compile(r"^(?:E\s+)?AssertionError: (?P<came>.+?) != (?P<wanted>.+?)(?: : .*)?$", re.MULTILINE)
_ERROR = re.compile(
    r"^(?:E\s+)?(?P<name>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit))(?:: (?P<told>.*))?$", re.MULTILINE
)
_FAILED = re.compile(r"\b(?P<failed>\d+) failed\b|\bFAILED \((?P<both>[^)]*)\)")
_PLACE = re.compile(
    r'File "[^"\n]*?(?P<file>[^"/\n]+)", line (?P<line>\d+)|^(?P<short>\S+\.(?:py|sh)):\s?(?:line )?(?P<number>\d+): ',
    re.MULTILINE,
)
_STATUS = re.compile(r"\[.*\]$")
_IMPORTED = re.compile(r"^\s*(?:from\s+(?P<one>[\w.]+)\s+import|import\s+(?P<other>[\w.]+))", re.MULTILINE)


def find_check(request: str, existing: Collection[str]) -> str:
    """The file that is said to fail: run again, it shows whether it was mended."""
    command = find_first_command(request) or find_red_tests(request, existing)
    named = _SCRIPT.findall(command)
    return named[-1] if named else ""


def find_mended_file(
    request: str, check: str, output: str, names: Collection[str], read: Callable[[str], str | None]
) -> str:
    """The one file of code that is to be mended for a run to succeed; empty where several may be."""
    kind = check[-3:]
    wanted = [name for name in names if _is_wanted(name, request) and name.endswith(kind) and not _is_end(name, check)]
    code = [name for name in wanted if not is_test(name) and not is_kept(name, request)]
    if code or not is_test(check):
        alone = [name for name in names if _is_end(name, check)]
        found = code or ([] if is_kept(check, request) else alone)
        return found[0] if len(found) == 1 else ""
    own = [name for name in names if name.endswith(kind) and not is_test(name) and not is_kept(name, request)]
    frames = [found["file"] or found["short"] for found in _PLACE.finditer(output)]
    passed = [name for frame in frames for name in own if _is_end(name, frame.rpartition("/")[2])]
    if passed:
        return passed[-1]
    tests = [name for name in names if _is_end(name, check)]
    text = (read(tests[0]) or "") if tests else ""
    modules = {(found["one"] or found["other"]).replace(".", "/") for found in _IMPORTED.finditer(text)}
    used = [name for name in own if name.removesuffix(".py") in modules]
    return used[0] if len(used) == 1 else ""


def _is_wanted(name: str, request: str) -> bool:
    return any(_is_end(name, wanted) for wanted in find_wanted_files(request))


def _is_end(name: str, end: str) -> bool:
    return name == end or name.endswith(f"/{end}")


def describe_failure(output: str, request: str) -> str:
    """What is wrong in a sentence: `f(3) gives 1, but it should give 2.`, and what the request says of how it is to be
    mended; else all of the request and the error that came."""
    compared = _describe_compared(output)
    return " ".join((compared, *_find_wishes(request))) if compared else _describe_error(output, request)


def describe_script_failure(command: str, output: str, request: str, names: Collection[str]) -> str:
    """The same of a script of the shell: what it said last, and the files that it can have meant."""
    said = [line.strip() for line in output.splitlines() if line.strip() and not _STATUS.match(line)]
    last = said[-1][:MAX_VALUE_CHARS] if said else "an error"
    files = ", ".join(sorted(names)[:MAX_LISTED_FILES])
    return " ".join((f"`{command}` ends with `{last}`. Files here: {files}.", *_find_wishes(request)))


def _find_wishes(request: str) -> list[str]:
    """Sentences that say how something is to be mended; those about other files are for later."""
    said = [" ".join(sentence.split()) for sentence in split_sentences(request)]
    names = {name for sentence in said if not _WISH.search(sentence) for name in _SCRIPT.findall(sentence)}
    wishes = [sentence for sentence in said if _WISH.search(sentence) and set(NAMED_FILE.findall(sentence)) <= names]
    return [f"{wish.rstrip('.!;')}." for wish in wishes][:MAX_WISHES]


def _describe_compared(output: str) -> str:
    found = next(reversed(list(_ASSERTED.finditer(output))), None)
    if found is None or _ends_otherwise(output):
        return ""
    asked, wanted, told = _split_assertion(found["line"])
    if not wanted:
        return f"{asked} should be true, but it is not." if asked else ""
    came = _CAME.search(output, found.start()) or _UNEQUAL.search(output, found.start())
    error = _ERROR.search(output, found.start())
    value = came["came"] if came and came["came"] != asked else ""
    if error and error["told"] and told == asked and not value:
        value = error["told"]
    if value and len(value) <= MAX_VALUE_CHARS:
        return f"{asked} gives {value}, but it should give {wanted}."
    return f"{asked} should give {wanted}, but it gives something else."


def _split_assertion(line: str) -> tuple[str, str, str]:
    """What is tested, what it should equal, and what is said where it does not, each as it is written."""
    try:
        (tested,) = ast.parse(line).body
    except (SyntaxError, ValueError):
        return "", "", ""
    sides, message = find_sides(tested)
    tested_alone = [tested.test] if isinstance(tested, ast.Assert) else []
    asked, wanted, *_ = (*(ast.get_source_segment(line, side) or "" for side in sides or tested_alone), "", "")
    return asked, wanted, (ast.get_source_segment(line, message) or "") if message else ""


def _ends_otherwise(output: str) -> bool:
    """Whether another error came than that of a comparison."""
    errors = [found["name"] for found in _ERROR.finditer(output)]
    return bool(errors) and errors[-1] != "AssertionError" and "AssertionError" not in errors


def _describe_error(output: str, request: str) -> str:
    errors = [found[0].removeprefix("E").strip() for found in _ERROR.finditer(output)]
    asked = " ".join(request.split())[:MAX_ASKED_CHARS]
    return f"{asked} It ends with {errors[-1].rstrip('.')}." if errors else ""


def measure_failure(output: str, check: str) -> tuple[int, int]:
    """How far a run got: fewer failures are more, then a later line of what was run."""
    failed = 1
    for found in _FAILED.finditer(output):
        failed = int(found["failed"] or sum(map(int, re.findall(r"\d+", found["both"]))))
    base = check.rpartition("/")[2]
    places = [
        int(found["line"] or found["number"])
        for found in _PLACE.finditer(output)
        if (found["file"] or found["short"]).rpartition("/")[2] == base
    ]
    return -failed, places[-1] if places else 0
