"""Which entries of a file of settings or styles a request names, and for which one alone something is to change. Pure.

A name counts where the words leave no doubt that the entry is meant: `db's port`, `of us-east`, `under [server]`,
`the db service`, `only db`. A word that occurs by chance does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.services.request_reading.plain_words import CHANGE_VERBS, FILE_NAME, has_file_ending
from ollm.services.request_reading.setting_entries import KEY, KINDS, Entry, list_entries
from ollm.services.request_reading.setting_values import Names

MAX_REQUEST_CHARS = 800  # a longer one says more than one small change
_KEPT = re.compile(  # what is to stay, up to the end of the clause
    r",?\s*(?:\b(?:but\s+)?(?:not(?!\s+only\b)|except(?:\s+for)?|excluding|other\s+than|apart\s+from|besides|unlike|instead\s+of|"
    r"rather\s+than)\b|\b(?:leave|keep)\b|\b(?:do\s+not|don't|don’t|dont|never|without)\s+(?!forget\b)\w+)"
    r"\s+(?:[^.;:,!?\n]|\.(?=\w))*",
    re.IGNORECASE,
)
_MANY = re.compile(  # what is said of one entry may hold for others
    r"\b(?:all|every|everything|everywhere|each|both|any|throughout|others?|another|rest|same|than|too|also|as\s+well|"
    r"as\s+(?:in|for|with)|match\w*|equal\w*|cop(?:y|ies|ied)|swap|exchange|respectively|not\s+only|based\s+on|"
    r"consistent\w*|align\w*)\b|(?<!would )(?<!'d )(?<!d )\blike\b",
    re.IGNORECASE,
)
_ORDINARY = frozenset(  # names that a sentence has without meaning the entry
    (  # noqa: SIM905
        "a an i in on to the is it for of or by with as no off be at from if so do me my up we you use set get new old "
        "one name value type key file line end start first last next default test main time date"
    ).split()
)
_ENDS = (  # behind a name that is no part of a longer one (`the production database`)
    r"(?=\s*(?:[.,;:!?)]|$)|\s+(?:to|in|of|on|at|from|by|with|is|should|must|and|or|so|as|be|an?|the|has|have|gets?|needs?|only|"
    rf"please|instead|now|which|that|use|{'|'.join(CHANGE_VERBS)})\b|\s+[`'\"\d])"
)


def strip_kept_parts(request: str) -> str:
    """The request without the names of files and what it wants left alone."""
    if len(request) > MAX_REQUEST_CHARS:
        return request
    plain = re.sub(FILE_NAME, lambda found: " " if has_file_ending(found[0]) else found[0], request)
    return _KEPT.sub(" ", plain)


def says_of_many(words: str) -> bool:
    """Whether more than the entries that are named may be meant."""
    return len(words) > MAX_REQUEST_CHARS or _MANY.search(words) is not None


def is_mentioned(name: str, words: str) -> bool:
    """Whether a name occurs at all, whatever for."""
    parts = re.split(r"[\s>+~:,]+", name)  # of a selector
    spellings = [other for part in (name, *parts) for other in list_spellings(part)]
    there = words.lower()
    return any(other.lower() in there and re.search(_make_token(other), words, re.IGNORECASE) for other in spellings)


def is_meant_alone(name: str, kind: str, keys: Collection[str], words: str) -> bool:
    """Whether the words speak of this entry; `kind` is the name of what it is in (`services`), `keys` what has changed
    in it."""
    return any(_is_meant(spelling, kind, keys, words) for spelling in list_spellings(name))


def list_spellings(name: str) -> list[str]:
    """What an entry is called: of `.card, .tile` each, with and without the point."""
    parts = [name, *(part.strip() for part in name.split(","))] if "," in name else [name]
    bare = [part.lstrip(".#") for part in parts if re.fullmatch(r"[.#][\w-]+", part)]
    return list(dict.fromkeys(part for part in (*parts, *bare) if part))


def _make_token(name: str) -> str:
    """The name as a word of its own, in quotes or brackets or not."""
    return rf"(?<![\w.#-])[`'\"“‘\[]{{0,2}}{re.escape(name)}(?![\w-]|[.:]\w)"


def _is_meant(name: str, kind: str, keys: Collection[str], words: str) -> bool:
    token = _make_token(name)
    marks = r"[`'\"”’\]]{0,2}"
    kinds = "|".join(map(re.escape, sorted({*KINDS, *_list_kinds(kind)})))
    own = "|".join(rf"{re.escape(key)}|{re.escape(re.sub(r'[_-]', ' ', key))}" for key in keys) or r"(?!)"
    plain = [
        rf"[`\"“\[]{re.escape(name)}[`\"”\]]|(?<!\w)'{re.escape(name)}'(?!\w)",
        rf"{token}{marks}['’]s\b",
        rf"{token}{marks}\s+(?:{kinds})\b",
        rf"\b(?:{kinds})\s+(?:called\s+|named\s+)?{token}",
        rf"{token}{marks}\s+(?:{own})\b",
    ]
    if name.lower() not in _ORDINARY:
        leads = (
            r"\b(?:of|in|under|for|inside|within|at|on|only|just)",
            r"\b(?:add|append|insert|put|give|write)\b[^.;]*?\b(?:in)?to",
            r"\b(?:remove|delete|drop|take)\b[^.;]*?\bfrom",
            r"\b(?:give|let|make|enable|disable|turn|switch)(?:\s+on|\s+off)?",
        )
        plain += [rf"{lead}\s+(?:the\s+)?{token}{marks}{_ENDS}" for lead in leads]
    return any(re.search(pattern, words, re.IGNORECASE) for pattern in plain)


def _list_kinds(kind: str) -> set[str]:
    """`service` for what is in `services`, `entry` for `entries`."""
    found = kind.lower()
    return {found[:-3] + "y" if found.endswith("ies") else found.removesuffix("s")} if len(found) > 2 else set()


def find_meant_entry(path: str, lines: list[str], words: str) -> Entry | None:
    """The only entry that the words speak of, or the one inside of all others that they mention."""
    entries = list_entries(path, lines)
    told = [entry for entry in entries if is_mentioned(entry.name, words)]
    inner = max(told, key=lambda entry: (entry.depth, entry.start), default=None)
    if inner is None or not all(entry.start <= inner.start and inner.end <= entry.end for entry in told):
        return None
    outer = [entry.name for entry in entries if entry.start < inner.start and inner.end <= entry.end]
    keys = [key["name"] for line in lines[inner.start + 1 : inner.end] if (key := KEY.match(line))]
    return inner if is_meant_alone(inner.name, outer[-1] if outer else "", keys, words) else None


def find_meant_names(known: Collection[Names], words: str) -> Names | None:
    """The names that lead to the only entry which the words speak of, of all `known` values. Of two entries of one name
    the one that is in what is mentioned, too."""
    owners = {names[:count] for names in known for count in range(1, len(names))}
    counts = {owner: sum(is_mentioned(name, words) for name in owner) for owner in owners if _is_told(owner, words)}
    most = max(counts.values(), default=0)
    best = [owner for owner, count in counts.items() if count == most]
    inner = best[0] if len(best) == 1 else ()
    if not inner or not all(owner == inner[: len(owner)] or owner[-1] in inner for owner in counts):
        return None
    keys = [names[-1] for names in known if names[: len(inner)] == inner]
    kind = inner[-2] if len(inner) > 1 else ""
    return inner if any(is_meant_alone(name, kind, keys, words) for name in (inner[-1], ".".join(inner))) else None


def _is_told(owner: Names, words: str) -> bool:
    return is_mentioned(owner[-1], words) or is_mentioned(".".join(owner), words)


def strip_entry(name: str, words: str) -> str:
    """The words without those that name the entry: of `set the port of db to 3`, `set the port to 3`."""
    marks, kinds = r"[`'\"”’\]]{0,2}", "|".join(sorted(KINDS))
    for spelling in list_spellings(name):
        token = _make_token(spelling)
        lead = r"(?:\b(?:only|just)\s+)?\b(?:of|in|for|under|inside|within|at|on)\s+(?:only\s+)?(?:the\s+)?"
        words = re.sub(
            rf",?\s*{lead}(?:(?:{kinds})\s+)?{token}{marks}(?:\s+(?:{kinds})\b)?(?!['’]s)",
            " ",
            words,
            flags=re.IGNORECASE,
        )
        words = re.sub(rf"{token}{marks}(?:['’]s)?(?:\s+(?:{kinds})\b)?(?:['’]s)?\s+", " ", words, flags=re.IGNORECASE)
    return words
