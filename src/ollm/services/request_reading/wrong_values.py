"""What a failing test of a model's own says: which line expects another value than the one that came. Pure.

A small model that is asked for a test works out values in its head, gets one wrong, and writes the same line for ever.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ollm.domain.struct import Data

MAX_VALUE_CHARS = 80
MAX_LINES_BELOW = 16  # of an output, between a line of a test and what is said of it
_EQUAL = ("assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertIs")
_ENDS = re.compile(r"[=_-]{8,}|(?:FAIL|ERROR|FAILED|Traceback)\b")
_FRAME = re.compile(r"\s*File \"|\S+\.py:\d+: in ")
_ERROR = re.compile(r"(?:E\s+)?(?P<name>[A-Z]\w*(?:Error|Exception|Iteration))(?:: (?P<said>.*))?$")
_SAID = re.compile(r"^(?:E\s+)?(?:AssertionError: )?(?:assert |\w+ differ: )?")
_CALL = r"(?P<asked>[A-Za-z_][\w.]*\((?:[^()]|\([^()]*\))*\))"
_TRUTHS = (  # how a call is tested for being true or false, what came instead, and the test for that
    (re.compile(rf"assert {_CALL}(?:, .*)?"), "False", "assert not {}"),
    (re.compile(rf"assert not {_CALL}(?:, .*)?"), "True", "assert {}"),
    (re.compile(rf"self\.assertTrue\({_CALL}\)"), "False", "self.assertFalse({})"),
    (re.compile(rf"self\.assertFalse\({_CALL}\)"), "True", "self.assertTrue({})"),
)
_MINE = ("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "UnboundLocalError")


class WrongValue(Data, frozen=True):
    """A line of a test as it is written, without what stands before it."""

    line: str
    said: str  # what came and what it expects
    mended: str = ""  # with the value that came; empty where there is none
    begun: str = ""  # up to the value, where it stands at the end
    raised: bool = False  # an error came, and no value


def find_wrong_values(output: str, text: str) -> list[WrongValue]:
    """The lines of this test that are said to expect another value, each once in it."""
    known = [line.strip() for line in text.splitlines()]
    lines = output.splitlines()
    found: dict[str, WrongValue] = {}
    for place, line in enumerate(lines):
        written = line.strip()
        if written.startswith(("assert ", "self.assert")) and known.count(written) == 1:
            wrong = _read_wrong(written, lines[place + 1 : place + 1 + MAX_LINES_BELOW])
            found |= {written: wrong} if wrong else {}
    return list(found.values())


def _read_wrong(written: str, below: list[str]) -> WrongValue | None:
    try:
        (statement,) = ast.parse(written).body
    except (SyntaxError, ValueError):
        return None
    said, deeper = [], False
    for line in below:
        if _ENDS.match(line):
            break
        deeper = deeper or _FRAME.match(line) is not None
        said.append(line)
    error = next((found for line in said if (found := _ERROR.match(line))), None)
    if error and error["name"] not in ("AssertionError", *_MINE):
        asked = _find_asked(written, statement)
        return WrongValue(line=written, said=f"{asked} raises {error['name']}", raised=True) if asked else None
    return None if deeper else _read_compared(written, statement, said) or _read_truth(written, said)


def find_sides(statement: ast.stmt) -> tuple[list[ast.expr], ast.expr | None]:
    """What is compared for equality, and what is a message of the model's own."""
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        compared = statement.test
        equal = len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq | ast.Is)
        return ([compared.left, *compared.comparators] if equal else []), statement.msg
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _EQUAL:
        return call.args[:2], None
    return [], None


def _find_asked(written: str, statement: ast.stmt) -> str:
    """The side that is worked out, as it is written."""
    sides = [side for side in find_sides(statement)[0] if not _is_literal(side)]
    return (ast.get_source_segment(written, sides[0]) or "") if len(sides) == 1 else ""


def _read_compared(written: str, statement: ast.stmt, said: list[str]) -> WrongValue | None:
    sides, message = find_sides(statement)
    wanted = [side for side in sides if _is_literal(side)]
    asked = _find_asked(written, statement)
    if len(wanted) != 1 or not asked:
        return None
    expected = ast.literal_eval(wanted[0])
    for came, other in (pair for line in said for pair in _read_values(_SAID.sub("", line))):
        if _is_same(other, expected) and not _is_same(came, expected):
            told = f"{asked} gives {came!r}, not {ast.get_source_segment(written, wanted[0])}"
            mended = _write_line(written, wanted[0], message, came)
            last = wanted[0] is sides[-1] and written.isascii()
            begun = _ask_for_equal(written[: wanted[0].col_offset]) if last else ""
            return WrongValue(line=written, said=told, mended=mended, begun=begun)
    return None


def _read_truth(written: str, said: list[str]) -> WrongValue | None:
    """A call that was to be true, or false, and was the other."""
    told = [_SAID.sub("", line).partition(" : ")[0].strip() for line in said]
    for pattern, came, now in _TRUTHS:
        found = pattern.fullmatch(written)
        marks = (came, f"{came} is not {str(came == 'False').lower()}", *(("not True",) if came == "True" else ()))
        if found and any(mark in told for mark in marks):
            return WrongValue(line=written, said=f"{found['asked']} gives {came}", mended=now.format(found["asked"]))
    return None


def _read_values(said: str) -> Iterator[tuple[object, object]]:
    """The two values of a comparison, either one first."""
    for mark in re.finditer(r" (?:==|!=|is(?: not)?) ", said):
        sides = said[: mark.start()], re.split(r" : | within \d+ places", said[mark.end() :])[0]
        if any(len(side) > MAX_VALUE_CHARS or "..." in side or " chars]" in side for side in sides):
            continue
        try:
            one, other = map(ast.literal_eval, sides)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            continue
        yield one, other
        yield other, one


def _write_line(written: str, wanted: ast.expr, message: ast.expr | None, came: object) -> str:
    """Only for one line in plain letters, as the places in it are counted in bytes."""
    if not written.isascii() or wanted.end_col_offset is None:
        return ""
    before, after = written[: wanted.col_offset], written[wanted.end_col_offset :]
    after = "" if message is not None else after  # it speaks of the value that did not come
    text = repr(came)
    if isinstance(came, str) and '"' in written and "'" not in text[1:-1] and '"' not in came:
        text = f'"{text[1:-1]}"'
    return _ask_for_equal(before) + text + after


def _ask_for_equal(before: str) -> str:
    return re.sub(r" is $", " == ", before)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def _is_same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
