"""Files that a request deletes, renames, moves or copies, and the command that does just that.

Only files that are there count, and only where the words say all of it. Pure: words in, a command out.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from ollm.services.request_reading.plain_words import (
    CHANGE_VERBS,
    FILE_NAME,
    FILE_NOUNS,
    has_file_ending,
    is_kept,
)
from ollm.services.request_reading.shown_files import MORE, list_shown_names

_START = r"\s*(?:(?:please|ok|okay|now|first|just|so|then|go\s+ahead\s+and|let's)\b,?\s+)*"
_DELETE = r"(?:delete|remove|erase|get\s+rid\s+of|trash|throw\s+away)"
_COPY = r"(?P<copy>copy|duplicate|back\s+up|(?:make|create|save)\s+a\s+(?:backup\s+)?(?:copy|backup)\s+of)"
_WORDS = (
    r"\b(?:and\s+|then\s+|also\s+|so\s+|but\s+|please\s+)*"
    rf"(?:{'|'.join(CHANGE_VERBS)}|run|execute|start|write|tell|say|show|check|test|commit|import|use|give|let|print|list|count|"
    r"look|find|see|verify|explain|leave|keep|do|don't|fill|it|that|this|which|because|since|as|we|i|nobody|nothing|no|"
    r"there|they|please|thanks|thank)\b"
)
_ENDS = re.compile(rf"\s*(?:[.!]?\s*$|[.!;]\s|\n|,\s+{_WORDS}|\s(?:and|then)\s+{_WORDS})", re.IGNORECASE)
_MARK = r"[`'\"]?"
_FOLDER_NAME = (
    r"(?!(?:it|there|one|another|its|the|an?|same|own|this|that|each|every|separate|different|new|parent|root|project|current|"
    r"right|correct|single|two|git|other|home|top|main|trash|clipboard|place|git|production|folder|directory)\b)[\w][\w./-]*(?<![./-])"
)
_KIND = r"(?:sub-?)?(?:folder|directory|dir)\b"
_A = r"(?:(?:an?|the|our|my|its\s+own|this)\s+)?(?:(?:new|existing)\s+)?"
_FOLDER = (
    rf"(?:{_A}{_KIND}\s+(?:named\s+|called\s+)?{_MARK}(?P<folder>{_FOLDER_NAME})/?{_MARK}|"
    rf"{_A}{_MARK}(?P<before>{_FOLDER_NAME})/?{_MARK}\s+{_KIND}|{_MARK}(?P<slashed>{_FOLDER_NAME})/{_MARK})"
)
_MAKE = r"(?:make|create|add|set\s+up|mkdir)"
_PLACE = rf"(?:the\s+)?{_MARK}(?P<place>(?!{FILE_NAME}){_FOLDER_NAME}){_MARK}"
_AS = r"(?:to|into|as|in|called|named|under\s+the\s+name(?:\s+of)?|with\s+the\s+name)"
_TO = rf"{_MARK}(?P<to>{FILE_NAME})(?!\w){_MARK}"
_THERE = rf"(?:(?:in|into|to|inside|under)\s+(?:it|there|(?:that|this|the)\s+(?:new\s+)?{_KIND})|there|inside)"
_NEXT = r"(?:\s*,?\s*(?:and|then)(?:\s+then)?|\s*[,;])\s+"
_SHOULD = r"(?:should|must|ought\s+to|has\s+to|needs\s+to|is\s+to)\s+(?:now\s+|really\s+)?"
_BEFORE = re.compile(
    r"\b(?:first|before|beforehand|unless|only\s+(?:if|when)|except|but\s+not|keep\s+a\s+(?:copy|backup))\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    rf"\b(?:{_DELETE}|rename[ds]?|move[ds]?|copy|duplicate|back\s+up|backup|put|place|call(?:ed)?|named?|belongs|go|live)\b",
    re.IGNORECASE,
)
_NUMBERS = {"two": 2, "both": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_LANGUAGES = {"python": "py", "markdown": "md", "text": "txt", "javascript": "js", "typescript": "ts", "shell": "sh"}
_GLOB = (
    r"(?:(?:all|every|each|the|both)\s+)+(?:of\s+)?(?:(?:the|our|my)\s+)?(?:(?P<count>two|three|four|five|six|\d+)\s+)?"
    r"(?:files\s+(?:ending|that\s+end|which\s+end)\s+(?:in|with|on)\s+[`'\"]?(?:\*?\.)?(?P<ending>\w+)[`'\"]?|"
    r"[`'\"]?(?:\*?\.)?(?P<type>\w+)[`'\"]?[\s-]+(?:files|scripts|pages|modules|(?P<single>file)))"
    rf"(?:\s+(?:in|from|of)\s+(?:(?:the\s+)?{_KIND}\s+)?[`'\"]?(?P<inside>[\w][\w./-]*\w)/?[`'\"]?(?:\s+{_KIND})?)?"
)


def find_file_command(request: str, primed: str) -> str:
    """The command for files that are deleted, renamed, moved or copied; `primed` is what was shown with the request."""
    paths = _list_paths(list_shown_names(primed))
    if not paths or not _TOLD.search(request):
        return ""
    named = [said for said in paths if said.lower() in request.lower()]
    one = rf"{FILE_NOUNS}{_MARK}(?:{_join(named) or '(?!)'})(?![\w/-]|\.\w){_MARK}"
    several = rf"(?P<files>(?>{one}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:also\s+)?{one})*)|(?P<glob>{_GLOB}))"
    for pattern in _list_patterns(one, several, request):
        found = re.match(pattern, request, re.IGNORECASE)
        if found and _ENDS.match(request, found.end()) and not _BEFORE.search(request, found.end()):
            some = found.groupdict().get("glob") and MORE.search(primed)
            return "" if some else _build(found, request, paths)
    return ""


def _list_paths(listed: Sequence[str]) -> dict[str, str]:
    """The files by what they may be called: their path, and their last name where no other file has it."""
    lasts = Counter(map(posixpath.basename, listed))
    short = {posixpath.basename(name): name for name in listed if lasts[posixpath.basename(name)] == 1}
    return {
        said: name for said, name in {**short, **{name: name for name in listed}}.items() if re.match(r"\w|\.\w", name)
    }


def _join(paths: Collection[str]) -> str:
    return "|".join(map(re.escape, sorted(paths, key=len, reverse=True)))


def _list_patterns(one: str, several: str, request: str) -> Iterator[str]:
    """Each has the files, and a folder, another name or neither of them, where they go."""
    file, said = rf"(?P<files>{one})", request.lower()
    told = r"(?:[^.,;:!?\n]|\.(?=\w))*"
    call, there = "(?:call|name)", r"(?:in|into|to|inside|under)"
    if re.match(rf"{_START}{_DELETE}", said):
        from_here = r"(?:\s+from\s+(?:the|this|our|my)\s+(?:project|repo|repository|disk))?"
        yield rf"{_START}(?P<delete>{_DELETE})\s+{several}{from_here}"
    if re.match(rf"{_START}{_MAKE}", said):
        then = rf"(?:{_NEXT}|\.\s+(?:then\s+)?)"
        yield rf"{_START}{_MAKE}\s+{_FOLDER}{then}(?:move|put|place|{_COPY})\s+{several}\s+{_THERE}"
        yield rf"{_START}{_MAKE}\s+{_FOLDER}\s+for\s+{several}{_NEXT}(?:move|put|place)\s+(?:it|them)\s+{_THERE}"
    if re.match(rf"{_START}(?:move|put|place|{_COPY})", said):
        yield rf"{_START}(?:move|put|place|{_COPY})\s+{several}\s+{there}\s+{_FOLDER}"
        yield rf"{_START}(?P<bare>move|put|{_COPY})\s+{several}\s+(?P<link>into|to|in)\s+{_PLACE}"
        yield rf"{_START}move\s+{file}\s+(?:to|into|as|->|→)\s+{_TO}"
        yield rf"{_START}{_COPY}\s+{file}\s+{_AS}\s+{FILE_NOUNS}{_TO}"
    if re.match(rf"{_START}rename", said):
        yield rf"{_START}(?P<rename>rename)\s+{file}\s+(?:to|into|as|->|→)\s+(?:be\s+)?{_TO}"
        yield rf"{_START}(?P<rename>rename)\s+{file}\s+to\s+{_MARK}(?P<bare_name>[A-Z]\w+){_MARK}"
    if re.search(rf"\b{call}\s+(?:it|the)\b", said):
        took = rf"(?:{_NEXT}|\.\s+){call}\s+(?:it|the\s+(?:copy|new\s+file))"
        yield rf"{_START}(?:(?P<rename>rename)|take|{_COPY})\s+{file}{took}\s+{_TO}"
    if re.match(rf"{_START}(?:change|give|call|name)", said):
        yield rf"{_START}change\s+(?P<rename>the\s+(?:file\s*)?name)\s+(?:of\s+)?{file}\s+(?:to|into)\s+{_TO}"
        yield rf"{_START}change\s+{file}'s\s+(?P<rename>(?:file\s*)?name)\s+to\s+{_TO}"
        yield rf"{_START}give\s+{file}\s+(?P<rename>the\s+(?:new\s+)?name)\s+{_TO}"
        yield rf"{_START}(?P<rename>{call})\s+{file}\s+{_TO}(?:\s+(?:instead|from\s+now\s+on))?"
    if re.match(rf"{_START}{one}", request, re.IGNORECASE):
        be = r"be\s+(?:called|named|renamed(?:\s+(?:to|into|as))?)"
        it = r"(?:it|that\s+file|this\s+file|the\s+file)"
        yield rf"{file}\s+(?:belongs|{_SHOULD}(?:go|live|move|be\s+moved|be))\s+{there}\s+{_FOLDER}"
        yield rf"{_START}{file}\s+{_SHOULD}(?P<rename>{be})\s+{_TO}(?:\s+instead)?"
        yield (
            rf"{_START}{file}\s+(?:has|is|was|carries)\b(?!{told}(?:{FILE_NAME})){told}[.,;:]\s+(?:so\s+|and\s+)?"
            rf"(?P<rename>rename|{call})\s+{it}\s+(?:to\s+|into\s+)?{_TO}"
        )


def _build(match: re.Match[str], request: str, paths: dict[str, str]) -> str:
    found = {name: value or "" for name, value in match.groupdict().items()}
    files = _expand(found, paths) if found.get("glob") else _list_files(found["files"], paths)
    if not files or any(is_kept(name, request) for name in files):
        return ""
    program = "rm" if found.get("delete") else "cp" if found.get("copy") else "mv"
    names = " ".join(name if "*" in name else shlex.quote(name) for name in files)
    if program == "rm":
        return f"rm {names}"
    if target := found.get("to") or found.get("bare_name", ""):
        return _build_move(program, files[0], target, paths, renamed=bool(found.get("rename")))
    folder = next((found[key] for key in ("folder", "before", "slashed", "place") if found.get(key)), "")
    known = any(path.startswith(f"{folder}/") for path in paths.values())
    if found.get("place") and not known and not (found["bare"].lower() == "move" and found["link"].lower() == "into"):
        return ""  # a file without an ending, or a folder
    if folder in paths or (not known and any(f"/{folder}/" in path for path in paths.values())):
        return ""
    return f"mkdir -p {folder} && {program} {names} {folder}/"


def _build_move(program: str, source: str, target: str, paths: dict[str, str], *, renamed: bool) -> str:
    folder = posixpath.dirname(target)
    if renamed and not folder and posixpath.dirname(source):
        target = posixpath.join(posixpath.dirname(source), target)
    if target in paths.values() and (program == "mv" or target == source):
        return ""  # another file would be lost
    if not has_file_ending(target) and posixpath.splitext(target)[1] != posixpath.splitext(source)[1] and "." in target:
        return ""
    move = f"{program} {shlex.quote(source)} {shlex.quote(target)}"
    return f"mkdir -p {shlex.quote(folder)} && {move}" if folder else move


def _list_files(said: str, paths: dict[str, str]) -> list[str]:
    return [paths[name] for name in re.findall(rf"(?<![\w./-])(?:{_join(paths)})(?![\w/-]|\.\w)", said)]


def _expand(found: dict[str, str], paths: dict[str, str]) -> list[str]:
    """A pattern of the shell for all files of a kind, where they are all in one folder. Their names where it is said
    how many they are: the pattern may match files that are not listed, too."""
    said = (found["ending"] or found["type"]).lower()
    ending, inside = _LANGUAGES.get(said, said), found["inside"].strip("/")
    folder = found.get("folder") or found.get("before") or found.get("slashed") or found.get("place") or ""
    named = {path for path in paths.values() if path.endswith(f".{ending}")}
    named = {path for path in named if not folder or not path.startswith(f"{folder}/")}
    held = {path for path in named if not inside or path.startswith(f"{inside}/")}
    count = _NUMBERS.get(found["count"], int(found["count"]) if found["count"].isdigit() else len(held))
    count = 1 if found["single"] and not re.match(r"(?:every|each)\b", found["glob"], re.IGNORECASE) else count
    if not held or len(held) != count or {posixpath.dirname(path) for path in held} != {inside}:
        return []
    counted = found["count"] or re.search(r"\bboth\b", found["glob"], re.IGNORECASE)
    return sorted(held) if counted else [posixpath.join(inside, f"*.{ending}")]
