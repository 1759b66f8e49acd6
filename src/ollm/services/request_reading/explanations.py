"""Whether the blocks of an answer are meant to be carried out, by what was asked: an explanation only quotes them.

Asked how something is done, a model quotes commands and files. Asked a question, it may look, but what would change
something is part of its words. Pure: words in, yes or no out.
"""

from __future__ import annotations

import re
from typing import Literal

from ollm.services.request_reading.asked_changes import asks_for_change, says_how_it_should_be
from ollm.services.request_reading.plain_words import (
    FILE_NAME,
    WORDS_WANTED,
    forbids_change,
    has_file_ending,
    is_called,
    split_sentences,
    strip_courtesy,
)
from ollm.services.request_reading.reservations import forbids_runs, only_forbids, runs_forbidden, waits

StepKind = Literal["shell", "file", "tool", "code"]

_ASKS_HOW = re.compile(
    r"\s*(?:(?:tell|show|teach|explain(?: to)?|describe(?: to)?)(?: me| us)?,?\s+)?"
    r"(?:how (?:do|can|would|could|should|does) (?:i|you|we|one|someone|anyone|people)\b|how to\b|"
    r"how (?:i|one) (?:can|would|could|should)\b|what(?: is the|'s the)? command\b|which command\b|"
    r"(?:give|show|write|tell)(?: me| us)? (?:the|an?) (?:\w+ )?(?:commands?|one-liner|examples?)\b|"
    r"(?:the|an) (?:command|example)\b|what (?:would|will) happen\b|what happens\b|"
    r"what(?:'s| is| are) the differences?\b|what does .* mean\b)|"
    r"\s*(?:i (?:want|would like|need) to know|i'd like to know|i wonder) "
    r"(?:how to|how (?:i|one|you)\b|(?:what |which )?(?:the )?command)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"\A\s*(?:(?:hey|hi|hello|ok(?:ay)?|so|well|btw|um+|hm+|(?:quick |one )?question)\b[\s,:!.-]+)+", re.IGNORECASE
)
_WANTS_TO_KNOW = re.compile(
    r"\s*(?:"
    r"(?:i (?:always |keep )?forg[eo]t(?:ting)?|i (?:do not|don['’]?t|cannot|can['’]?t|never) (?:know|remember|recall)|"
    r"(?:i have )?no idea|(?:i am |i['’]?m )?not sure|i (?:want|need|would like) to (?:learn|see)|remind me|"
    r"(?:help me|i (?:try|want) to) understand),? (?:of |about )?"
    r"(?:how|what|which|the (?:\w+ )?(?:command|cmd|way|syntax))\b|"
    r"(?:(?:i am |i['’]?m )(?:just )?|just )?(?:curious|wondering)\b|"
    r"(?:what(?:['’]?s| is| would be)|which is|is there) (?:the|an?) (?:\w+ )?"
    r"(?:way|method|trick|syntax|command|cmd)\b|"
    r"what (?:do|should|would|must|can) i (?:type|enter|use|run|write)\b|"
    r"(?:(?:(?:kannst|könntest|würdest) du )?(?:mir |uns )?(?:bitte |mal |kurz )*(?:erklären|sagen|zeigen|beschreiben)|"
    r"(?:erkläre?|sage?|zeige?|beschreibe?) (?:mir|uns)(?: bitte| mal| kurz)*|"
    r"ich (?:wei(?:ß|ss) nicht(?: mehr)?|habe vergessen|wüsste gerne?|möchte wissen)),? "
    r"(?:wie|was|womit|welche[rsn]?|mit welche[mnr])\b|"
    r"(?:peux-tu |pouvez-vous |puedes )?(?:m['’]|me )?(?:expliqu\w+|explic\w+|dis|dime)(?:-moi| moi| me)? "
    r"(?:comment|cómo|como)\b)",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\s*(?:(?:is|are|was|were|does|do|did|has|have)\b[^.!]*\?|"
    rf"(?:what|which|who|whose|where|when|why|how|any idea|{WORDS_WANTED}|i (?:want|need|would like|wonder)(?: to)? "
    r"(?:know|understand|what|why|how|which|where|who)|i'd like to (?:know|understand))\b)",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\s*(?:explain|describe|tell|say|show|list|count|find|read|search|summari[sz]e|review|suggest|propose|compare|check|"
    r"look at|print|give (?:me|us)|think|calculate|(?:make|write|give) (?:me |us )?(?:an?|some) (?:\w+ )?"
    r"(?:list|overview|summary|suggestions?|explanation|description|comparison|poem|haiku|story|joke))\b",
    re.IGNORECASE,
)
_WRITTEN = re.compile(
    r"\b(?:into|creat\w*|writ\w*|sav\w*|stor\w*|comments?|docstrings?|new (?:file|script)|"
    r"an? (?:new )?(?:file|script|module|page)|"
    rf"(?:to|as) `?(?:{FILE_NAME}))",
    re.IGNORECASE,
)
_WISHED = re.compile(
    r"\s*(?:(?:can|could|should|shall|would) we\b|(?:how|what) about\b|why not\b|"
    r"(?:is|would) (?:it|this) (?:be )?possible\b|[^?]*, please\?|"
    r"print\b.*\b(?:instead|twice|before|after|when|whenever|at\s+the\s+(?:end|start|beginning|top|bottom))\b)",
    re.IGNORECASE,
)
_RUNS = re.compile(
    r"\s*(?:please\s+|now\s+|then\s+)?(?:run|execute|start|try|test|build|compile|install|launch|call)\b", re.IGNORECASE
)
_EXPLAINS = re.compile(
    r"\b(?:explain|describe|review|suggest|summari[sz]e|compare|"
    r"what .*\b(?:do|does|happen|mean|for)\b(?!.*\b(?:print|output|say|show|write|display|yield|return|give)))\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"\W*(?:delete|remove|erase|wipe|drop|clear|empty|purge|rename|move|overwrite|replace|(?:clean|tidy)(?:\s+up)?|cleanup)\W*",
    re.IGNORECASE,
)
_WRITES = re.compile(r"(?<![0-9&<>=-])>{1,2}(?!&)\s*(?!/dev/null\b)[^\s&|;]|<<")
_TARGET = re.compile(r"(?<![0-9&<>=-])>{1,2}\s*([\w.-]+\.\w+)(?=\s*(?:$|[;&|\n]))")
_SEPARATOR = re.compile(r"\|\||&&|[|;\n&(){}`]|\$\(|\b(?:do|then|else|xargs(?:\s+-\S+)*)\s")
_ASSIGNMENT = re.compile(r"^(?:\s*(?:\w+=\S*|if|while|for\s+\w+\s+in.*|!|time|sudo\s))+\s*")
_CODE_WRITES = re.compile(r"\b(?:remove|unlink|rmtree|rename|write|mkdir|system|subprocess|truncate|w\b)")
_SED_WRITES = re.compile(r"\s-\w*i|\s--in-place")
_FIND_WRITES = re.compile(r"\s-(?:delete|exec|execdir|ok|fprint)")
_LOOKING_GIT = re.compile(r"git\s+(?:log|diff|show|status|blame|ls-files|grep|branch\s*$|rev-parse|describe)\b")
LOOKING = frozenset(
    (  # noqa: SIM905
        "cat ls grep egrep fgrep rg wc head tail sort uniq cut awk gawk tr diff cmp comm pwd tree du df stat file echo "
        "printf test [ nl tac column jq date which type basename dirname realpath readlink seq expr bc strings od xxd "
        "hexdump paste join fold rev md5sum sha256sum uname whoami id env printenv cd true false done fi esac less more"
    ).split()
)
RUNNING = frozenset("python python3 node pytest ruby perl sh bash go cargo npm make".split())  # noqa: SIM905


def asks_how(request: str) -> bool:
    """Whether nothing of the answer is to be carried out: it is asked how something is done."""
    return _ASKS_HOW.match(_strip_greeting(request)) is not None


def _strip_greeting(request: str) -> str:
    return strip_courtesy(_GREETING.sub("", strip_courtesy(request), count=1))


def _wants_to_know(words: str) -> bool:
    """Whether somebody says what they do not know, and orders nothing besides."""
    if not (found := _WANTS_TO_KNOW.match(words)):
        return False
    rest = re.split(r"[.!?:;,]\s+|\s(?:and|so|but|und|then)\s", words[found.end() :])[1:]
    return not any(_is_wish(part) or asks_for_change(part) for part in rest)


def is_question(request: str) -> bool:
    """Whether words are wanted and no change. A question in a language that is not known here counts by its mark. Where
    it may be a wish (`Can we have …?`, `Explain it in a comment`) it is none."""
    words = _strip_greeting(request)
    if _wants_to_know(words) or only_forbids(words) or waits(words):
        return True
    if asks_for_change(words):
        return False
    if forbids_change(words):
        return True
    sentences = split_sentences(words)
    if not sentences or any(map(_is_wish, sentences)):
        return False
    if _asks(sentences[0]) or _asks(sentences[-1]):
        return True
    return _TELLING.match(sentences[0]) is not None and not _WRITTEN.search(words)


def _is_wish(sentence: str) -> bool:
    """Whether a sentence wants something done, whatever its mark."""
    if says_how_it_should_be(sentence) or _is_plain_order(sentence):
        return True
    return (_WISHED.match(sentence) or _RUNS.match(sentence)) is not None


def _asks(sentence: str) -> bool:
    return sentence.endswith("?") or _QUESTION.match(sentence) is not None


def _is_plain_order(sentence: str) -> bool:
    """`Do it.`, `please do`: what was asked before it is meant."""
    return re.match(r"\s*(?:please\s+)?do(?:\s+(?:it|so|that|this))?\s*[.!]*$", sentence, re.IGNORECASE) is not None


def is_meant(request: str, kind: StepKind, body: str, path: str = "", shown: str = "") -> bool:
    """Whether this block of an answer to the request is a step; otherwise it is quoted. A file that nobody spoke of, in
    the request or in what was `shown` with it, may be written to find the answer to a question."""
    if asks_how(request):
        return False
    stays = forbids_runs(request)
    if kind == "shell" and runs_forbidden(body, request):
        return False
    if kind not in ("shell", "file") or not (is_question(request) or (stays and kind == "shell")):
        return True
    new = _find_new_files(request, shown)
    if kind == "file" and path in new:
        return True
    body = _TARGET.sub(lambda found: "" if found[1] in new else found[0], body) if new else body
    runs = lets_run(request)
    if kind == "file":
        return runs and bool(path) and path not in request and path not in shown
    return is_looking(body, runs=runs, kept=f"{request}\n{shown}")


def lets_run(request: str) -> bool:
    """Whether programs may be run to find the answer to a question."""
    told = any(map(_RUNS.match, split_sentences(strip_courtesy(request))))
    explains = _EXPLAINS.search(request) is not None
    return not forbids_runs(request) and not explains and (told or not forbids_change(request))


def _find_new_files(request: str, shown: str) -> set[str]:
    """Files that an order for words names and that are not there: `List the modules in files.txt` writes it."""
    listed = shown.rpartition("Files here: ")[2].partition("\n")[0].split(", ") if "Files here: " in shown else None
    if listed is None or "?" in request or forbids_change(request):
        return set()
    named = {name for name in re.findall(FILE_NAME, request) if has_file_ending(name)}
    return {name for name in named if not any(is_called(path, name) for path in listed)}


def names_nothing(request: str) -> bool:
    """`delete`, and no word of what: said first, nothing can be meant by it."""
    return _BARE.fullmatch(strip_courtesy(request)) is not None


def is_looking(command: str, *, runs: bool, kept: str = "") -> bool:
    """Whether a command only looks; `runs`: or runs a program without changing something by itself, and writes into
    files that `kept` does not mention."""
    if runs:
        command = _TARGET.sub(lambda found: "" if kept and found[1] not in kept else found[0], command)
    if _WRITES.search(re.sub(r"'[^']*'|\"[^\"]*\"", "_", command)):
        return False
    parts = (
        _ASSIGNMENT.sub("", part).strip() for part in _SEPARATOR.split(re.sub(r"'[^']*'|\"[^\"]*\"", "_", command))
    )
    return all(_is_looking_part(part, command, runs=runs) for part in parts if part)


def _is_looking_part(part: str, command: str, *, runs: bool) -> bool:
    program = part.split(maxsplit=1)[0].rpartition("/")[2]
    if program in RUNNING or part.startswith("./"):
        return runs and not (" -c" in part and _CODE_WRITES.search(command))
    if program == "sed":
        return not _SED_WRITES.search(part)
    if program == "find":
        return not _FIND_WRITES.search(part)
    if program == "git":
        return _LOOKING_GIT.match(part) is not None
    return program in LOOKING or program.endswith(":")  # no command at all, but output
