"""Git's wildcard language, written as regular expressions for RE2 (linear time, whatever a repository's rules say).

Everything is bytes, as in git: `?` is one byte, names need not be UTF-8. The expressions are meant for paths from the
root and never match a NUL, which separates paths when many are searched at once.
"""

from __future__ import annotations

_ANY = rb"[^\x00]*"
_WITHIN = rb"[^/\x00]*"
_SPECIAL = b"*?[\\"
_MAX_EXPANDED = 16
_LITERALS = [bytes([code]) if bytes([code]).isalnum() or code == 0x2F else b"\\x%02x" % code for code in range(256)]


class BadPattern(ValueError):  # noqa: N818 - it is what it is called
    """A pattern that can never match: an unfinished `[`, an unknown `[:class:]`, a `\\` at the end."""


def escape_literal(text: bytes) -> bytes:
    return text if text.isalnum() else b"".join(map(_LITERALS.__getitem__, text))


def measure_literal(pattern: bytes) -> int:
    """How many bytes are before the first wildcard or escape."""
    return next((at for at, code in enumerate(pattern) if code in _SPECIAL), len(pattern))


def expand_sets(pattern: bytes) -> list[bytes]:
    """`*.py[cod]` as `*.pyc`, `*.pyo` and `*.pyd`: the patterns that it stands for, where its sets are a few letters or
    digits; else the pattern as it is."""
    found, rest = [b""], pattern
    while b"[" in rest:
        start, _, rest = rest.partition(b"[")
        members, closing, rest = rest.partition(b"]")
        if b"\\" in start or not closing or not members.isalnum() or len(found) * len(members) > _MAX_EXPANDED:
            return [pattern]
        found = [before + start + members[at : at + 1] for before in found for at in range(len(members))]
    return [before + rest for before in found]


def translate_pattern(pattern: bytes) -> bytes:
    """A pattern for a path. As in git the part before the first wildcard is compared as it is, and what follows is
    read as a pattern of its own: a `**` right there counts as one at the start."""
    cut = measure_literal(pattern)
    return escape_literal(pattern[:cut]) + _translate_wildcards(pattern[cut:])


def _translate_wildcards(pattern: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while at < len(pattern):
        match pattern[at : at + 1]:
            case b"*":
                part, at = _translate_stars(pattern, at)
            case b"?":
                part, at = rb"[^/\x00]", at + 1
            case b"[":
                part, at = _translate_set(pattern, at + 1)
            case b"\\":
                if at + 1 == len(pattern):
                    raise BadPattern("a backslash at the end escapes nothing")
                part, at = escape_literal(pattern[at + 1 : at + 2]), at + 2
            case other:
                part, at = escape_literal(other), at + 1
        parts.append(part)
    return b"".join(parts)


def _translate_stars(pattern: bytes, at: int) -> tuple[bytes, int]:
    end = at
    while pattern[end : end + 1] == b"*":
        end += 1
    rest = pattern[end:]
    starts = at == 0 or pattern[at - 1 : at] == b"/"
    if end - at == 1 or not starts or not (not rest or rest.startswith((b"/", b"\\/"))):
        return _WITHIN, end
    if rest.startswith(b"/"):
        return b"(?:" + _ANY + b"/)?", end + 1
    return _ANY, end


def _translate_set(pattern: bytes, at: int) -> tuple[bytes, int]:
    """A `[…]`, from behind the bracket: `!` or `^` negates, a `]` that comes first is a member, `\\` escapes."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous, first = 0, True
    while first or pattern[at : at + 1] != b"]":
        first = False
        added, previous, at = _read_member(pattern, at, previous)
        members |= added
    if negated:
        members = set(range(256)) - members
    members -= {0, 0x2F}
    if not members:
        raise BadPattern("a set that holds no character")
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(members)) + b"]", at + 1


def _read_member(pattern: bytes, at: int, previous: int) -> tuple[set[int], int, int]:
    """The next member of a set: what it adds, the start of a range that may follow, and where to go on."""
    code = _read_code(pattern, at)
    following = pattern[at + 1 : at + 2]
    if code == 0x2D and previous and following not in (b"", b"]"):
        at += 1
        if pattern[at : at + 1] == b"\\":
            at += 1
        return set(range(previous, _read_code(pattern, at) + 1)), 0, at + 1
    if code == 0x5B and following == b":":
        end = pattern.find(b"]", at + 2)
        if end < 0:
            raise BadPattern("a set without its closing bracket")
        if end > at + 2 and pattern[end - 1 : end] == b":":
            return set(_expand_class(pattern[at + 2 : end - 1])), 0, end + 1
    if code == 0x5C:
        at += 1
        code = _read_code(pattern, at)
    return {code}, code, at + 1


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


def _read_code(pattern: bytes, at: int) -> int:
    if at >= len(pattern):
        raise BadPattern("a set without its closing bracket")
    return pattern[at]
