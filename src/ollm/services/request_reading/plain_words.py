"""A request without its courtesies, and what it forbids to change. Pure: words in, words out."""

from __future__ import annotations

import re

FILE_NAME = (  # from its first character on: in a long word without an ending all others would be tried, too
    r"(?<![\w@+-])(?<![\w@+-][./])[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*\.[A-Za-z]\w{0,9}|"
    r"(?<![\w./-])\.(?:env|\w+(?:rc|ignore|config|attributes|keep|profile|version))(?:\.\w{1,9})?(?!\w)"
)
FILE_NOUNS = (  # what may stand before the name of a file, and says no more than that it is one
    r"(?:(?:(?:the|our|my|your|this|that|a|an|its)\s+)?(?:(?!(?:of|in|on|from|for|and|or|to|with|at|by|than|the)\b)[\w-]+\s+){0,2}?"
    r"(?:files?|scripts?|modules?|pages?|images?|pictures?|photos?|icons?|documents?|templates?|tests?|notebooks?|programs?|stylesheets?|"
    r"spreadsheets?|logs?|configs?|configuration|makefile|dockerfile|readme|data|backups?|notes?|drafts?)\s+|"
    r"(?:the|our|my|your|this|that)\s+(?:(?:old|new|existing|empty|unused|obsolete)\s+)?)?"
)
WORDS_WANTED = (
    r"(?:in|on|at|to|from|by|for|with|of|until|since|under) (?:which|what|whom|whose)|"
    r"(?:please )?(?:keep in mind|bear in mind|remember that|note that)|let (?:me|us) (?:know|see|look|hear)|"
    r"(?:give|name|suggest)(?: me| us)? (?:(?:an?|some|\d+|two|three|four|five|ten) )?(?:\w+ )?"
    r"(?:names?|examples?|ideas?|reasons?|ways?|words?|titles?|options?|tips?)"
)
OWN_FILES = "--exclude-dir=.git --exclude-dir=.venv --exclude-dir=node_modules"  # for grep: not what was installed
MAX_READ_CHARS = 4_000  # of a request: what is longer has a text in it that says nothing of what is to be done
HALF_WORD_CHARS = 120
_LONG_WORD = re.compile(r"\S{300,}")
_LONG_GAP = re.compile(r"\s{4,}")
CHANGE_VERBS = tuple(
    (  # noqa: SIM905
        "rename change replace update fix set add append prepend insert raise lower bump increase decrease "
        "reduce remove delete drop move edit modify correct repair convert rewrite refactor introduce extract "
        "make turn mend sort implement switch swap put extend adjust adapt patch improve optimize optimise "
        "simplify shorten disable enable format reformat translate document uncomment duplicate wrap empty "
        "truncate clear split merge concatenate combine reverse clean ensure undo revert restore reset strip "
        "trim indent capitalize capitalise toggle upgrade downgrade apply annotate overwrite migrate unify "
        "tick untick uncheck mark reorder rearrange create substitute join deduplicate dedupe uppercase "
        "lowercase pin unpin"
    ).split()
)
_ENDINGS = frozenset(
    (  # noqa: SIM905
        "py pyi js mjs cjs ts tsx jsx vue json jsonl yaml yml toml ini cfg conf env properties txt text md "
        "rst adoc tex csv tsv log out dat data lst list html htm css scss xml svg sh bash zsh bat ps1 sql db "
        "sqlite rb go rs java kt c h cc cpp hpp cs php pl lua r swift ipynb lock bak old orig tmp diff patch "
        "gradle tf proto mk service example sample in "
    ).split()
)
_ASKED = (
    r"(?:can|could|would|will) (?:you|u|someone|somebody|anyone)"
    r"(?: (?:please|pls|kindly|quickly|also|maybe|perhaps|just|now))*|"
    r"i(?:'d| would) like you to|i (?:want|need) you to|(?:is there )?any chance (?:that )?you (?:can|could)|"
    r"(?:please|pls|plz),?|kannst du(?: bitte)?|könntest du(?: bitte)?|bitte|peux-tu|pourrais-tu|puedes|podrías"
)
_GERUND = r"(?:would|do) you mind|how about|what about"
_COURTESY = re.compile(
    rf"(?P<before>^\s*|[.!?;]\s+|\n\s*|,\s+(?:and\s+)?|\band\s+)(?:(?:hi|hello|hey|ok|okay)\b(?: there)?[,!.]?\s+)?"
    rf"(?:(?:{_GERUND})\s+(?P<gerund>[a-z]{{2,}}ing)\b|(?:{_ASKED})\s+(?!mind\b))"
    r"(?P<rest>(?:[^.!?\n]|[.](?=\S))*)(?P<end>\?)?",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?<=[\w`'\")\]])(?<!\bsay)(?<!\bsays)(?<!\bprint)(?<!\bprints)(?<!\bto)(?<!\bwith),?\s+"
    r"(?:please|pls|plz|thanks|thank you|thx)(?=[.!]*(?:\s|$))(?!\s+\w)",
    re.IGNORECASE,
)
_VERBS = (
    r"(?:chang|edit|modif|touch|writ|delet|remov|alter|fix|renam|apply|appli|replac|mov|add|overwrit|correct|repair|updat)"
    r"(?:e|y|ying|ing|ting)?"
)
_NOT = r"(?:do not|don't|dont|don’t|without|never|not|must not|may not|mustn't)\s+(?:actually\s+|ever\s+)?"
_ALL = (
    r"(?:it\b|them\b|any(?:thing\b(?:\s+else\b)?|\s+(?:of\s+the\s+|other\s+)?(?:files?|code)\b)|"
    r"(?:the|my)\s+(?:files?|code)\b(?!\s+[\w./-]*\w\.\w)|files\b|code\b)"
)
_FORBIDS = re.compile(
    rf"\b{_NOT}{_VERBS}\s+{_ALL}(?:\s+yet\b|\s+itself\b)?|"
    r"\b(?:change|modify|touch|edit|write|delete)\s+nothing\b(?:\s+else\b)?|"
    r"\b(?:make\s+|with\s+)?no\s+(?:changes|edits|modifications)\b",
    re.IGNORECASE,
)
_NAMES = (
    rf"(?:the\s+)?(?:tests?\s+|files?\s+)?`?(?:{FILE_NAME})`?(?:(?:\s*,\s*|\s+(?:and|or|nor)\s+)`?(?:{FILE_NAME})`?)*"
)
_AS_IT_IS = r"(?:as\s+(?:it|they)\s+(?:is|are)|alone|untouched|unchanged|the\s+same)"
_MUST_NOT = r"(?:do not|don't|dont|don’t|without|never|must not|may not|mustn't|should not|shouldn't)\s+(?:ever\s+)?"
_ONLY_PARTLY = r"(?!'s|[\w/]|\s+(?:except|but\s+(?:for|only)|other\s+than|apart\s+from|besides|unless|until)\b)"
_KEPT = re.compile(
    rf"\b{_MUST_NOT}(?:chang|edit|modif|touch|alter)(?:e|y|ying|ing)?\s+(?:anything\s+in\s+)?({_NAMES}){_ONLY_PARTLY}|"
    rf"\b(?:leave|keep)\s+({_NAMES})\s+{_AS_IT_IS}|"
    rf"\b(?:except(?:\s+(?:for|in))?|apart\s+from|other\s+than|but\s+not(?:\s+in)?)\s+({_NAMES}){_ONLY_PARTLY}|"
    rf"(?<![\w.@+/-])((?>{_NAMES}))\s+(?:must|should|has\s+to|have\s+to)\s+(?:(?:stay|remain)\s+{_AS_IT_IS}|"
    r"not\s+be\s+(?:changed|edited|touched|modified|deleted|removed|renamed|moved|overwritten))",
    re.IGNORECASE,
)
_KEPT_TESTS = re.compile(
    rf"\b{_NOT}(?:chang|edit|modif|touch|alter)(?:e|y|ying|ing)?\s+(?:the\s+|any\s+)?tests?\b(?!\s+[\w./-]*\w\.\w)|"
    r"\b(?:leave|keep)\s+the\s+tests?\s+(?:as|alone|untouched|unchanged)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:\bnot|n['’]t|\bdont|\bnever|\bwithout)\s+(?!forget\b|only\b)(?:\w+\s+){0,3}$", re.IGNORECASE)
_SAYS = re.compile(
    r"(\b(?:(?:say|says|saying|write|note|mention|mentions|state|states|reads|document|describe)\b|"
    r"(?:add|append)\b(?=[^:\n]*\b(?:to|in|into)\s+\S+:))(?:[^.:;\n]|\.(?=\w)){0,60}:)\s.*",
    re.IGNORECASE,
)
_DICTATED = re.compile(rf"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|{_SAYS.pattern}", re.IGNORECASE)


def strip_courtesy(request: str) -> str:
    """`Could you please rename …` as `rename …`, in each of its sentences; a question mark that only belonged to the
    courtesy goes with it, and a `please` at the end. What is read by rules has gone through here, and is not long."""
    return _THANKS.sub("", _COURTESY.sub(_make_plain, shorten_request(request)))


def shorten_request(request: str) -> str:
    """Of a long one its beginning and its end: what is between them was pasted. Words, too, are cut in the middle, and
    gaps are closed, so that no rule takes long."""
    if len(request) > MAX_READ_CHARS:
        request = f"{request[: MAX_READ_CHARS // 2]}\n{request[-MAX_READ_CHARS // 2 :]}"
    request = _LONG_GAP.sub(lambda found: "\n\n" if "\n" in found[0] else " ", request)
    return _LONG_WORD.sub(lambda found: f"{found[0][:HALF_WORD_CHARS]}…{found[0][-HALF_WORD_CHARS:]}", request)


def _make_plain(found: re.Match[str]) -> str:
    verb = make_verb(found["gerund"]) if found["gerund"] else ""
    return f"{found['before']}{verb}{found['rest']}{'.' if found['end'] else ''}"


def make_verb(gerund: str) -> str:
    """`renaming` as `rename`, `putting` as `put`, `adding` as `add`."""
    stem = gerund[:-3].lower()
    return next((verb for verb in (stem, f"{stem}e", stem[:-1]) if verb in CHANGE_VERBS), gerund)


def strip_prohibition(request: str) -> str:
    """What is asked besides: of `Set x to 1. Change nothing else.` the first sentence."""
    return _KEPT_TESTS.sub("", _KEPT.sub("", _FORBIDS.sub("", request)))


def forbids_change(request: str) -> bool:
    """Whether it says that something is to stay as it is: all of it, where no change is asked for besides."""
    return _FORBIDS.search(request) is not None


def is_ordered(request: str, place: int) -> bool:
    """Whether the words that begin at this place are an order: not what is forbidden (`do not rename …`), and not what
    a text is to say (`write into README.md: rename …`)."""
    if _NEGATED.search(request, max(0, place - 80), place):
        return False
    return not any(found.start() < place < found.end() for found in _DICTATED.finditer(request))


def strip_dictated(request: str) -> str:
    """Without what a text is to say: files that are named in it are no targets."""
    return _SAYS.sub(r"\1", request)


def is_kept(path: str, request: str) -> bool:
    """Whether a file is to stay as it is: `don't touch a.py`, `leave a.py alone`, `all files except a.py`, a test where
    tests are not to be changed."""
    name = path.rpartition("/")[2]
    spans = (span for found in _KEPT.finditer(request) for span in found.groups() if span)
    named = {kept.rpartition("/")[2] for span in spans for kept in re.findall(FILE_NAME, span)}
    return name in named or (is_test(path) and _KEPT_TESTS.search(request) is not None)


def has_file_ending(name: str) -> bool:
    """Whether a name with a point is a file's: `db.internal`, `sys.argv` and `api.example.com` are none."""
    return name.startswith(".") or "/" in name or name.rpartition(".")[2].lower() in _ENDINGS


def is_test(path: str) -> bool:
    """Whether the file's name says that it is a test."""
    return re.search(r"(?:^|[_.-])tests?(?:[_.-]|$)", path.rpartition("/")[2], re.IGNORECASE) is not None


def split_sentences(request: str) -> list[str]:
    """Its sentences, with their marks. A point inside a name ends none."""
    return [part.strip() for part in re.split(r"(?<=[.;!?])\s+|\n+", request) if part.strip()]


def is_called(path: str, name: str) -> bool:
    """Whether a file is meant by this name: its path, or the end of it."""
    return path == name or path.endswith(f"/{name}")


def is_named_file(path: str, request: str) -> bool:
    """Whether the request names this file, or none."""
    named = [name for name in re.findall(FILE_NAME, request) if has_file_ending(name)]
    return not named or any(is_called(path, name) for name in named)
