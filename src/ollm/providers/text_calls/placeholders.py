"""Comments and dots in a block that stand for code the model did not write (`# ... rest of the code`). Pure."""

from __future__ import annotations

import re

_DOTS = r"(?:\.{3}|…)"
_THINGS = (
    r"(?:code|file|functions?|methods?|lines?|contents?|implementation|page|class|script|logic|body|program|module)\b"
)
_KEPT = rf"(?:{_DOTS}|unchanged|same|here|stays?|remains?|goes)"
_WORDS = (
    rf"{_DOTS}\s*$",
    rf"{_DOTS}\s*[\[(<]?(?:the |your |all )?(?:rest|remain|exist|other|previous|same|unchanged|more|code|omitted)",
    (
        r"(?:the |all )?(?:rest|remainder|remaining|existing) (?:of )?(?:the |your |this )?(?:\w+ )?"
        rf"{_THINGS}(?:.*{_KEPT}.*)?\s*$"
    ),
    rf"(?:other|previous|(?:add |insert )?your) (?:\w+ )?{_THINGS}.*{_KEPT}",
)
_COMMENT = re.compile(r"^\s*(?:#|//|\{?/\*|--|<!--|;|%)\s*[\[(<]?(.*?)[\])>]?\s*(?:\*/\}?|-->)?\s*$")
_PLACEHOLDER = re.compile("|".join(_WORDS), re.IGNORECASE)
_BARE_DOTS = re.compile(rf"^\s*{_DOTS}\s*$", re.MULTILINE)
_SHOWN = re.compile(r"^\S+ is long \(\d+ lines\)\. (?:Parts of it|It begins):", re.MULTILINE)  # what we said of a file


def has_placeholder(body: str, current: str = "") -> bool:
    """Whether a comment of the block, not one of the file's own, stands for code."""
    if _SHOWN.search(body) and not _SHOWN.search(current):
        return True
    comments = ((line, _COMMENT.match(line)) for line in body.splitlines())
    return any(found and _PLACEHOLDER.match(found[1]) and line.strip() not in current for line, found in comments)


def leaves_out(new: str, old: str) -> bool:
    """Whether lines that take the place of others stand for some of them."""
    return has_placeholder(new, old) or (_BARE_DOTS.search(new) is not None and not _BARE_DOTS.search(old))
