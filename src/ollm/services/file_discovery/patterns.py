"""Wildcard patterns as RE2 expressions: git's syntax for rules, shell globs for people and models.

RE2 matches any rule and any name in linear time. Everything is bytes, as in git: `?` is one byte, names need not be
UTF-8. Expressions match paths from the root and never match a NUL, which separates paths searched together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any

from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import compile_late

_ANY = rb"[^\x00]*"
_WITHIN = rb"[^/\x00]*"
_SPECIAL = b"*?[\\"
_MAX_EXPANDED = 16
_CAPITALS = set(range(0x41, 0x5B))
_LITERALS = [bytes([code]) if bytes([code]).isalnum() or code == 0x2F else b"\\x%02x" % code for code in range(256)]


class BadPattern(ValueError):  # noqa: N818 - it is what it is called
    """A pattern that can never match: an unfinished `[`, an unknown `[:class:]`, a `\\` at the end."""


def escape_literal(text: bytes) -> bytes:
    return text if text.isalnum() else b"".join(map(_LITERALS.__getitem__, text))


def measure_literal(pattern: bytes) -> int:
    """Count the bytes before the first wildcard or escape."""
    return next((at for at, code in enumerate(pattern) if code in _SPECIAL), len(pattern))


def expand_sets(pattern: bytes) -> list[bytes]:
    """Expand sets: `*.py[cod]` becomes `*.pyc`, `*.pyo` and `*.pyd`. Only small sets of letters or digits are expanded;
    else the pattern is returned unchanged."""
    found, rest = [b""], pattern
    while b"[" in rest:
        start, _, rest = rest.partition(b"[")
        members, closing, rest = rest.partition(b"]")
        if b"\\" in start or not closing or not members.isalnum() or len(found) * len(members) > _MAX_EXPANDED:
            return [pattern]
        found = [before + start + members[at : at + 1] for before in found for at in range(len(members))]
    return [before + rest for before in found]


def translate_name(pattern: bytes, *, ignore_case: bool = False) -> bytes:
    """Translate a pattern for a name, in which `**` is one star."""
    return translate_pattern(pattern, ignore_case=ignore_case).replace(_ANY, _WITHIN)


def translate_pattern(pattern: bytes, *, ignore_case: bool = False) -> bytes:
    """Translate a path pattern. As in git, the part before the first wildcard is literal and the rest is a separate
    pattern: a `**` at its start counts as one at the start of a pattern. With `ignore_case` its sets are those of an
    expression that is compiled so."""
    cut = measure_literal(pattern)
    rest = pattern[cut:]
    if rest[:1] == b"*" and measure_literal(rest[1:]) == len(rest) - 1:  # Most patterns are like `*.log`.
        return escape_literal(pattern[:cut]) + _WITHIN + escape_literal(rest[1:])
    return escape_literal(pattern[:cut]) + _TOKEN.sub(partial(_translate_token, ignore_case=ignore_case), rest)


_TOKEN = compile_late(
    rb"(?P<deep>(?:^|(?<=/))\*{2,}+(?:/|$|(?=\\/)))|(?P<star>\*++)|(?P<one>\?)"
    rb"|(?P<set>\[[!^]?+(?:\](?:-(?!\])(?:\\.|[^\\]))?+)?+"
    rb"(?:\[:[^\]]*:\]|(?:\\.|[^\]\\])(?:-(?!\])(?:\\.|[^\\]))?+)*+\])"
    rb"|\\(?P<escaped>.)|(?P<text>[^*?\[\\]++)|.",
    re.DOTALL,
)
_MEMBER = compile_late(rb"\[:([^\]]*):\]|(\\?.)(?:-(\\?.))?", re.DOTALL)  # A class, a character or a range.


def _translate_token(found: re.Match[bytes], *, ignore_case: bool) -> bytes:
    match found.lastgroup:
        case "deep":
            return b"(?:" + _ANY + b"/)?" if found[0].endswith(b"/") else _ANY
        case "star":
            return _WITHIN
        case "one":
            return rb"[^/\x00]"
        case "set":
            return _translate_set(found[0][1:-1], ignore_case)
        case None:
            ends = found[0] == b"\\"
            raise BadPattern("a backslash at the end escapes nothing" if ends else "a set without its closing bracket")
    return escape_literal(found[found.lastgroup])


def _translate_set(inner: bytes, ignore_case: bool) -> bytes:
    """Translate what is in the brackets of a `[…]`: `!` or `^` negates, backslash escapes. To ignore case, git compares
    small letters: with those of ranges and classes, but never with a capital by itself."""
    negated = inner[:1] in (b"!", b"^")
    members: set[int] = set()
    for name, begin, end in _MEMBER.findall(inner[negated:]):
        span = bytes(range(begin[-1], end[-1] + 1)) if end else b"" if begin else _expand_class(name)
        members.update(begin[-1:], span, span.lower() if ignore_case else b"")
    if negated:
        members = set(range(256)) - members
    members -= {0, 0x2F}
    if ignore_case:
        members = members - _CAPITALS or {0}  # No name contains a null byte.
    if not members:
        raise BadPattern("a set that holds no character")
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(members)) + b"]"


def _expand_class(name: bytes) -> bytes:
    import string

    letters, digits, marks = string.ascii_letters, string.digits, string.punctuation
    classes = {
        b"alnum": letters + digits,
        b"alpha": letters,
        b"blank": " \t",
        b"cntrl": "".join(map(chr, range(32))) + "\x7f",
        b"digit": digits,
        b"graph": letters + digits + marks,
        b"lower": string.ascii_lowercase,
        b"print": letters + digits + marks + " ",
        b"punct": marks,
        b"space": string.whitespace,
        b"upper": string.ascii_uppercase,
        b"xdigit": string.hexdigits,
    }
    if name not in classes:
        raise BadPattern(f"there is no class [:{name.decode(errors='replace')}:]")
    return classes[name].encode()


_MAX_MEMORY_BYTES = 64 << 20


def _make_options(*, ignore_case: bool) -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    options.never_capture = True
    options.case_sensitive = not ignore_case
    return options


@lru_cache(maxsize=512)
def compile_bytes(expression: bytes, *, ignore_case: bool = False) -> Any:
    import re2

    return re2.compile(expression, _make_options(ignore_case=ignore_case))


def compile_set(expressions: list[bytes], *, ignore_case: bool = False, anywhere: bool = False) -> Any:
    """Compile all expressions. `.Match(text)` gives the numbers of those that match it wholly (or in part), or None."""
    import re2

    kind = re2.Set.SearchSet if anywhere else re2.Set.FullMatchSet
    together = kind(_make_options(ignore_case=ignore_case))
    for expression in expressions:
        together.Add(expression)
    together.Compile()
    return together


class NameSearch:
    """Finds names in a directory whose path matches one of the expressions, with one search for all."""

    def __init__(self, expressions: Sequence[bytes], *, ignore_case: bool = False) -> None:
        together = b"|".join(b"(?:" + expression + b")" for expression in expressions)
        self._whole = rb"\x00/(?:" + together + rb")\x00"
        self._ignore_case = ignore_case
        self._any = compile_set([self._whole], ignore_case=ignore_case, anywhere=True)

    @cached_property
    def _each(self) -> Any:
        return compile_bytes(self._whole, ignore_case=self._ignore_case)

    def find_matches(self, base: str, names: Sequence[str]) -> set[str]:
        """Find the matching names. `base` is the directory's path, empty or ending with `/`."""
        text = os.fsencode(f"\0/{base}" + f"\0\0/{base}".join(names) + "\0")
        if not names or not self._any.Match(text):
            return set()
        cut = len(os.fsencode(base)) + 2
        spans = [found.span() for found in self._each.finditer(text)]
        return set(os.fsdecode(b"\0".join([text[start + cut : end - 1] for start, end in spans])).split("\0"))

    def select(self, base: str, names: list[str]) -> list[str]:
        found = self.find_matches(base, names)
        return [name for name in names if name in found]


_MAX_ALTERNATIVES = 1000


def translate_glob(pattern: str) -> bytes:
    """Translate a glob. Without a slash it matches names at any depth, `/x` only at the root."""
    if not pattern or "\0" in pattern:
        raise ToolFailure("InvalidPattern", "A glob must not be empty or contain NUL.")
    try:
        parts = [_translate_alternative(alternative) for alternative in expand_braces(pattern)]
    except (BadPattern, UnicodeEncodeError) as error:
        raise ToolFailure("InvalidPattern", f"Invalid glob {pattern!r}: {error}.") from error
    return b"(?:" + b"|".join(parts) + b")"


def _translate_alternative(pattern: str) -> bytes:
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    prefix = b"" if "/" in pattern else rb"(?:[^\x00]*/)?"
    return prefix + translate_pattern(os.fsencode(pattern.lstrip("/")))


def compile_globs(patterns: Sequence[str]) -> NameSearch | None:
    """Compile a search for all globs, or return None if there are none."""
    return NameSearch([translate_glob(pattern) for pattern in patterns]) if patterns else None


_GROUP = compile_late(r"\\.|\{((?:[^{}\\]|\\.)*)\}", re.DOTALL)
_COMMA = compile_late(r"(?<!\\),")


def expand_braces(pattern: str) -> list[str]:
    """Expand `*.{ts,tsx}` to `*.ts` and `*.tsx`, also nested. An unpaired brace, or one without a comma, is literal."""
    found = list(islice(_iter_expansions(pattern), _MAX_ALTERNATIVES + 1))
    if len(found) > _MAX_ALTERNATIVES:
        raise BadPattern(f"its braces expand to more than {_MAX_ALTERNATIVES} patterns")
    return list(dict.fromkeys(found))


def _iter_expansions(pattern: str) -> Iterator[str]:
    """Iterate over the alternatives of the last group, an inner one first, and expand the rest of each."""
    groups = [found for found in _GROUP.finditer(pattern) if found[1] and _COMMA.search(found[1])]
    for part in _COMMA.split(groups[-1][1]) if groups else ():
        yield from _iter_expansions(pattern[: groups[-1].start()] + part + pattern[groups[-1].end() :])
    if not groups:
        yield pattern
