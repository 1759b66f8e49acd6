"""Where a request wants something to be: functions in files, folders that go, definitions that move. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from ollm.domain.struct import Data
from ollm.providers.text_calls.definitions import find_definitions, list_defined_names
from ollm.services.request_reading.plain_words import FILE_NAME, is_ordered
from ollm.services.request_reading.reservations import KEEPS

_MADE = re.compile(
    r"(?:\b(?:function|class|method|helper)\s+(?:called\s+|named\s+)?`?(?P<name>[A-Za-z_]\w*)`?(?:\([^)]*\))?|"
    r"`?\b(?P<called>[A-Za-z_]\w*)\([^)]*\)`?\s+(?:function|method|helper)|"
    r"\b(?:write|implement|define)\s+`?(?P<bare>(?!print\b|input\b)[A-Za-z_]\w*)\((?:[A-Za-z_][^)'\"]*)?\)`?)\s+"
    rf"(?:in|to|into|inside)\s+(?:a\s+new\s+file\s+|the\s+file\s+)?`?(?P<path>{FILE_NAME})`?",
    re.IGNORECASE,
)
_METHOD = r"`?(?P<name>[A-Za-z_]\w*)`?(?:\((?P<given>[^)]*)\))?`?"
_A_METHOD = rf"an?\s+(?:new\s+)?method\s+(?:called\s+|named\s+)?{_METHOD}"
_OWNER = r"(?:the\s+)?(?:class\s+)?`?(?P<owner>[A-Za-z_]\w*)(?!\w|\.\w)`?(?:\s+class)?"
_HOLDER = rf"(?:\s*[(,]?\s*(?:in\s+|of\s+)?`?(?P<path>{FILE_NAME})`?)?"
_METHODS = tuple(
    re.compile(wording, re.IGNORECASE)
    for wording in (
        rf"\b(?:method|function)\s+(?:called\s+|named\s+)?{_METHOD}\s+(?:to|in|into|inside|on|for)\s+{_OWNER}{_HOLDER}",
        rf"\b(?:an?|the|new)\s+{_METHOD}\s+method\s+(?:to|in|into|inside|on|for)\s+{_OWNER}{_HOLDER}",
        rf"\bgive\s+{_OWNER}{_HOLDER}\s+{_A_METHOD}",
        rf"{_OWNER}{_HOLDER}\s+(?:needs|should\s+(?:have|get)|must\s+have|lacks|gets)\s+{_A_METHOD}",
        rf"\bto\s+{_OWNER}{_HOLDER},?\s+(?:add\s+)?{_A_METHOD}",
    )
)
_ANOTHER = re.compile(rf"\band\s+{_A_METHOD}", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:writ|add|creat|mak|implement|put|defin|need|want)", re.IGNORECASE)
_FOLDER = re.compile(
    r"(?:^|[.;,:!]\s+|\n|\b(?:and|then|please|also|now|just|(?:need|want|have)\s+to)\s+)(?P<verb>delete|remove|drop|get\s+rid\s+of)\s+"
    r"(?:the\s+)?(?:whole\s+|entire\s+|old\s+|empty\s+)?(?:(?:folder|directory)\s+`?(?P<after>[\w.-]+(?:/[\w.-]+)*)/?`?|`?(?P<before>[\w.-]+(?:/[\w.-]+)*)/?`?\s+(?:folder|directory))",
    re.IGNORECASE,
)
_NAMES = r"`?[A-Za-z_]\w*`?(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)`?[A-Za-z_]\w*`?)*"
_MOVED = re.compile(
    rf"\b(?:move|extract|pull|take)\s+(?:the\s+)?(?:(?:functions?|class(?:es)?|methods?|helpers?)\s+)?(?P<names>{_NAMES})\s+"
    rf"(?:out\s+of|from)\s+`?(?P<source>{FILE_NAME})`?\s+(?:in)?to\s+(?:(?:a|the)\s+)?(?:new\s+)?(?:file\s+|module\s+)?"
    rf"`?(?P<target>{FILE_NAME})`?",
    re.IGNORECASE,
)


_REMOVED = re.compile(
    r"\b(?:remove|delete|drop)\s+(?:the\s+)?(?:\w+\s+)?(?:(?P<mark>['\"`])(?P<quoted>[^'\"`\n]+)(?P=mark)|(?P<name>\w+(?:[-_]\w+)+))(?![\w./])",
    re.IGNORECASE,
)
MOVED_BY = "\n\nThis command makes the move:\n```bash\n"  # right behind the names, where no text of a file can be
MOVE_END = "\n```"
_SHOWN = re.compile(rf"\s*Files here: [^\n]*{re.escape(MOVED_BY)}(?P<command>[^\n]+){re.escape(MOVE_END)}(?=\n|$)")
_MODULE = r"\w[\w/-]*\.py"
_PRINTED = rf"sed -n '[\d,;pG{{}}]+' {_MODULE}"
_EDIT = (
    r"-e '(?:\d+,\d+d|\d+[ai] (?:from|import) [\w., \\]+|\d+s/\$/, [\w, ]+/|\d+s/\.\*/from [\w., \\]+/|"
    r"\d+\{G;G;s/\$/(?:from|import) [\w., \\]+/\}|\$a\\)'"
)
_MOVE_STEP = (
    rf"(?:mkdir -p \w[\w/-]*|{_PRINTED} >>? {_MODULE}|\{{ echo; echo; {_PRINTED}; \}} >> {_MODULE}|"
    rf"sed -i {_EDIT}(?: {_EDIT})* {_MODULE})"
)
_MOVE_COMMAND = re.compile(rf"{_MOVE_STEP}(?: && {_MOVE_STEP})*")
_DATA = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".txt", ".csv", ".md")


class MovedNames(Data, frozen=True):
    """Definitions that go from one file to another."""

    names: tuple[str, ...]
    source: str
    target: str


class AskedMethod(Data, frozen=True):
    """A method that is to be written; `path` is empty where the words do not name the file of its class."""

    name: str
    owner: str
    path: str
    parameters: str  # as far as the words give them


def find_asked_methods(request: str) -> list[AskedMethod]:
    """Methods and what may be their classes: only the file says whether they are."""
    founds = [found for pattern in _METHODS for found in pattern.finditer(request)]
    made = {
        (found["name"], found["owner"]): AskedMethod(
            name=found["name"], owner=found["owner"], path=found["path"] or "", parameters=found["given"] or ""
        )
        for found in reversed(founds)
    }
    named = {name for name, _ in made}
    for found in founds:
        for more in _ANOTHER.finditer(request, found.end()):
            if more["name"] not in named:
                made[more["name"], found["owner"]] = AskedMethod(
                    name=more["name"],
                    owner=found["owner"],
                    path=found["path"] or "",
                    parameters=more["given"] or "",
                )
                named.add(more["name"])
    return sorted(made.values(), key=lambda method: request.find(method.name))


def has_method(text: str, owner: str, name: str) -> bool | None:
    """Whether a class of a text has this method; None where the text has no such class, or more than one."""
    found = find_definitions(text.splitlines())
    owners = [one for one in found if one.name == owner and re.match(r"(?:@.*\n)*\s*class\b", one.text)]
    if len(owners) != 1:
        return None
    inside = (one for one in found if owners[0].start < one.start and one.end <= owners[0].end)
    return any(one.name == name for one in inside)


def find_asked_places(request: str) -> dict[str, str]:
    """The file in which each function is to be written, by the function's name."""
    if not _WRITES.search(request):
        return {}
    return {found["name"] or found["called"] or found["bare"]: found["path"] for found in _MADE.finditer(request)}


def find_deleted_folders(request: str) -> list[str]:
    """Folders that are to go, where an order says so."""
    ordered = (found for found in _FOLDER.finditer(request) if is_ordered(request, found.start("verb")))
    return [found["after"] or found["before"] for found in ordered]


def find_moved_names(request: str) -> MovedNames | None:
    """What goes from one file to another, where an order says so."""
    ordered = (one for one in _MOVED.finditer(request) if is_ordered(request, one.start()))
    found = None if re.search(KEEPS, request, re.IGNORECASE) else next(ordered, None)
    names = re.findall(r"[A-Za-z_]\w*", re.sub(r"\band\b", " ", found["names"])) if found else []
    return MovedNames(names=tuple(names), source=found["source"], target=found["target"]) if found else None


def describe_moved_file(request: str, command: str, read: Callable[[str], str | None]) -> str:
    """Why a command is not run that moves a whole file over another, where only parts of it were to go there."""
    moved = find_moved_names(request)
    if moved is None or not re.search(
        rf"\b(?:mv|cp)\s+(?:-\w+\s+)*{re.escape(moved.source)}\s+{re.escape(moved.target)}(?!\S)", command
    ):
        return ""
    text = read(moved.source) or ""
    if not all(_holds(text, name) for name in moved.names):
        return ""
    told = f"Only {' and '.join(moved.names)} is to go from {moved.source} to {moved.target}: nothing was run."
    return f"{told} Write {moved.target} with it."


def is_move_command(command: str) -> bool:
    """Whether it does nothing but take lines from one module to another and rewrite imports."""
    return _MOVE_COMMAND.fullmatch(command) is not None


def find_shown_move(request: str, primed: str) -> str:
    """The command for a move as it went with the request; a text that looks like it is none."""
    found = _SHOWN.match(primed)
    paths = re.findall(r">>? (\S+)", found["command"]) if found else []
    named = paths and all(path in request for path in paths)
    return found["command"] if found and named and is_move_command(found["command"]) else ""


def describe_lacking(request: str, path: str, content: str, read: Callable[[str], str | None]) -> str:
    """Why a block for the file that definitions move to is not taken: it lacks them; with them as they are now."""
    moved = find_moved_names(request)
    if moved is None or path != moved.target:
        return ""
    lacking = [name for name in moved.names if not _holds(content, name)]
    there = [found for found in find_definitions((read(moved.source) or "").splitlines()) if found.name in lacking]
    if not there or _holds(read(path) or "", lacking[0]):
        return ""
    shown = "\n\n\n".join(found.text for found in there)
    told = f"{path} is to define {' and '.join(lacking)}: nothing was changed. In {moved.source} there is:"
    return f"{told}\n```\n{shown}\n```\nWrite that into {path}."


def find_misplaced_parts(request: str, texts: Mapping[str, str], existing: Collection[str]) -> list[str]:
    """The step for each folder that is there still, and for what is not in the file where it is to be."""
    folders = [name for name in find_deleted_folders(request) if any(path.startswith(f"{name}/") for path in existing)]
    steps = [f"The folder {name} is still there. Now run rm -r {name}." for name in folders]
    moved = find_moved_names(request)
    if moved and moved.target in texts:
        lacking = [name for name in moved.names if not _holds(texts[moved.target], name)]
        if lacking:
            steps.append(f"{moved.target} does not define {' and '.join(lacking)}. Now change {moved.target}.")
    if moved and moved.source in texts:
        left = [name for name in moved.names if name in list_defined_names(texts[moved.source])]
        steps += [f"{name} is still in {moved.source}: remove it there." for name in left]
    for found in _REMOVED.finditer(request):
        gone = found["quoted"] or found["name"]
        holding = [path for path, text in texts.items() if path in request and path.endswith(_DATA) and gone in text]
        steps += [f"{gone} is still in {path}. Now remove {gone} from {path}." for path in holding]
    for name, path in find_asked_places(request).items():
        if path in texts and name not in list_defined_names(texts[path]):
            steps.append(f"{path} does not define {name}. Now change {path}.")
    for method in find_asked_methods(request):
        if has_method(texts.get(method.path, ""), method.owner, method.name) is False:
            steps.append(f"{method.owner} has no method {method.name}. Now change {method.path}.")
    return steps


def _holds(text: str, name: str) -> bool:
    """Whether it defines a function, a class or a value of this name."""
    return (
        name in list_defined_names(text)
        or re.search(rf"^\s*(?:const\s+|let\s+)?{name}\s*=", text, re.MULTILINE) is not None
    )
