"""Commands of small models without the slips that make them say something else than was meant. Pure.

Only what cannot have been meant is mended: a substitution that never ends, a table split at blanks that it does not
have, the sum of all files taken for one of them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection

from ollm.services.request_reading.plain_words import is_test

_HEREDOC = re.compile(
    r"cat\s*>\s*(?P<path>[\w./-]+)\s*<<-?\s*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)[ \t]*\n(?P<body>.*\n)?(?P=mark)",
    re.DOTALL,
)
_EXPANDS = re.compile(r"[$`\\]")
_PYTHON_CODE = re.compile(r"(\bpython3?\s+-c\s+)(\"(?:[^\"\\]|\\.)*\"|'[^']*')")
_ENTRIES = re.compile(
    r"(?<![\w-])echo\s+(?P<quote>[\"'])(?P<text>[^\"'\n\\$`]+)(?P=quote)(?=\s*>{1,2}\s*(?:\S*/)?(?:\.\w+ignore|requirements[\w-]*\.txt)(?:\s*$|\s*[;&\n]))"
)
_OPENED = re.compile(r"(?P<head>with\b.*?\bas\s+\w+\s*:)\s*(?P<body>\S.*)")
_GATHERED = re.compile(r"^(for\b[^\n]*?(?:\.append\(|\+=)[^\n]*);\s*((?:print|json\.dump)\([^\n;]*\))$", re.MULTILINE)
_SORT = re.compile(r"^(\s*sort\s+)(?=[^'\"]*-k\s*\d|-\w*k\s*\d)(?!.*(?:-t|--field-separator))")
_PYTHON_LINE = re.compile(
    r"(?:import \w+(?: as \w+)?|from [\w.]+ import .+|(?:async )?def \w+\(.*|class \w+.*:|print\(.*\)|@\w+.*)$"
)
_SLASHED = re.compile(
    r"(?P<head>sed\s+(?:-i|--in-place)\s+(?:-E\s+|-e\s+)?')s/(?P<words>[^'\n]*)/(?P<flags>[gI]*)'\s+(?P<path>[\w./-]+)"
)
_OPEN_SUBSTITUTION = re.compile(r"(\bsed\s+(?:-[\w.]+\s+)*'s/(?:[^/'\\\n]|\\.)+/(?:[^/'\\\n]|\\.)*)(')")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_AWK = re.compile(r"^\s*(?:g|m)?awk\s+")
_SEPARATED = re.compile(r"^\s*(?:g|m)?awk\b.*?\s(?:-F|--field-separator)|\bFS\s*=")
_COLUMNS = re.compile(r"\$(?:[2-9]|\d\d|NF)")
_KEEPS_LINES = re.compile(r"^\s*(?:grep|egrep|cat|head|tail|sort|uniq|sed|tac)\b")
_TOTALLED = re.compile(
    r"(\bwc -l\s+(?:[^|;&\n]*[*?][^|;&\n]*|\S+\s+[^|;&\n]+?))\s*\|\s*(sort\b[^|;&\n]*\|\s*(?:head|tail)\b)"
)
_ECHOED = re.compile(r"(?<![\w-])echo\s+(?P<text>\"(?:[^\"\\]|\\.)*\"|'[^']*')(?=\s*>{1,2}\s*(?P<path>[\w./-]+))")
_SCRIPT = re.compile(r"(?<![\w/-])python3?\s+(?P<path>[\w./-]+\.py)(?![\w.])")
_SCRIPT_NAME = re.compile(r"(?<![\w./-])[\w./-]*\w\.py(?![\w.]*\w)")
_BARE_SCRIPT = re.compile(r"(?P<before>\s*)(?P<path>(?:\./)?\w[\w./-]*\.(?P<ending>sh|py|js))(?=\s|$)")
_COUNT_INTO = re.compile(
    r"(\bwc(?:\s+(?:-[lwcmL]|--(?:lines|words|chars|bytes)))+)\s+(?!-)([\w./-]+)(?=\s*(?:\)|>|\|\s*tee\b))"
)
_INTO_FILE = re.compile(r">{1,2}\s*(?!&|/dev/)[\w\"'$./-]|\|\s*tee\s")
_NUMBER_WANTED = re.compile(r"\b(?:numbers?|count|how\s+many|totals?|amount)\b", re.IGNORECASE)
_NAME_WANTED = re.compile(
    r"\bwc\b|\b(?:file\s*names?|its\s+name|names?\s+of\s+(?:the|each|every)\s+files?|file's\s+name|output\s+of|each|every)\b",
    re.IGNORECASE,
)
_LAST_FILE = re.compile(
    r"\s*(?<![0-9&<>=-])(?P<mark>>{1,2})\s*(?P<path>[\w.-]+\.\w+)\s*(?P<shown>(?:;|&&|\n)\s*cat\s+(?P=path)\s*)?$"
)
_PROGRAM = re.compile(r"(?:^|[;&|]\s*)(?:\./|(?:python3?|sh|bash|node|npm|make|go|cargo|ruby|perl)\s)")
_FILE_WANTED = re.compile(
    r"\b(?:files?|output|results?|logs?|backup)\b|"
    r"\b(?:sav|writ|dump|export|redirect|stor|record)(?:e|es|ing)?\s+(?:it|them|that|this|these|the|its|all|every\w*|what|an?)\b|"
    r"(?:^|[.;,]\s+|\b(?:and|then)\s+)(?:convert|turn|merge|combine|concatenate|join|split|extract|collect|copy|generate|create|filter)\s+(?!(?:in|of|must|should)\b)",
    re.IGNORECASE,
)
_CHANGING = r"\b(?:sed\b.*\s(?:-\w*i|--in-place)|perl\b.*\s-\w*i|rm|mv|tee|truncate)\b"
_PAIR = re.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?\s*[:=]\s*(\S.*)")
_PROSE = frozenset(("txt", "md", "csv", "yaml", "yml", "ini", "toml", "env", "conf", "cfg", "log"))


def mend_command(command: str) -> str:
    """The command as it was meant."""
    return break_entries(break_code(break_lines(separate_columns(drop_total(close_substitution(command))))))


def read_written_file(command: str) -> tuple[str, str]:
    """The path and the text of a command that only writes a file; both empty for any other command."""
    written = _HEREDOC.fullmatch(command.strip())
    if written is None or (not written["quote"] and _EXPANDS.search(command)):
        return "", ""
    return written["path"], written["body"] or ""


def is_python(command: str) -> bool:
    """Whether a command is a Python program that was written in a shell block."""
    first = next((line for line in command.splitlines() if line.strip() and not line.startswith("#")), "")
    return _PYTHON_LINE.match(first) is not None and _compiles(command)


def feed_python(command: str) -> str:
    """A program in Python as the command that runs it."""
    return f"python - <<'PROGRAM'\n{command.rstrip()}\nPROGRAM"


def show_file(command: str, exists: Callable[[str], bool]) -> str:
    """The name of a file that is no program, as the command that shows it."""
    name = command.strip()
    plain = re.fullmatch(r"[\w./-]+\.\w+", name) and not name.endswith((".sh", ".py", ".bat"))
    return f"cat {name}" if plain and "/bin/" not in name and exists(name) else command


def mend_slashes(command: str, read: Callable[[str], str | None]) -> str:
    """`sed -i 's/a/b/c/d/' FILE` with slashes in its words: the longest old text that is in the file counts."""
    found = _SLASHED.fullmatch(command.strip())
    parts = re.split(r"(?<!\\)/", found["words"]) if found else []
    if found is None or len(parts) < 3:
        return command
    text = read(found["path"]) or ""
    pairs = [("/".join(parts[:place]), "/".join(parts[place:])) for place in range(1, len(parts))]
    pairs = [(old, new) for old, new in pairs if old.strip() and old in text]
    if not pairs or "|" in found["words"]:
        return command
    old = re.sub(r"([.\[\]*^$])", r"\\\1", pairs[-1][0])
    return f"{found['head']}s|{old}|{pairs[-1][1]}|{found['flags']}' {found['path']}"


def break_entries(command: str) -> str:
    """`echo "a b" > .gitignore` with each name on its own line, where none has blanks."""

    def write(found: re.Match[str]) -> str:
        names = found["text"].split()
        plain = (
            len(names) > 1
            and not found["text"].startswith("#")
            and all(re.fullmatch(r"[\w.*/!=<>~-]+", n) for n in names)
        )
        return f"printf '%s\\n' {' '.join(map(shlex.quote, names))}" if plain else found[0]

    return _ENTRIES.sub(write, command)


def break_code(command: str) -> str:
    """`python -c "import json; with open(…) …"` with its statements on lines of their own, where it runs only so."""
    return _PYTHON_CODE.sub(lambda found: found[1] + (_break_statements(found[2]) or found[2]), command)


def _break_statements(quoted: str) -> str:
    code = quoted[1:-1]
    broken = re.sub(r";\s*(?=(?:with|for|if|while|try|def|class)\b)", "\n", code)
    for made in (_indent_opened(broken), broken):
        plain = (text.replace(r"\"", '"') if quoted[0] == '"' else text for text in (code, made))
        if [*map(_compiles, plain)] == [False, True]:
            return quoted[0] + made + quoted[0]
    return ""


def _indent_opened(code: str) -> str:
    """What follows the opening of a file is done while it is open, and what is gathered is printed when it is whole."""
    lines, depth = [], ""
    given = _GATHERED.sub(r"\1\n\2", code).split("\n")
    for line in given:
        opened = _OPENED.fullmatch(line) if line is not given[-1] else None
        lines += [f"{depth}{opened['head']}", f"{depth} {opened['body']}"] if opened else [f"{depth}{line}"]
        depth += " " if opened else ""
    return "\n".join(lines)


def _compiles(code: str) -> bool:
    from ollm.services.syntax_check import find_syntax_error

    return find_syntax_error("code.py", code) is None


def break_lines(command: str) -> str:
    r"""`echo "a\nb" > FILE` with the two lines that are meant, where the file would hold a backslash instead."""
    return _ECHOED.sub(lambda found: _break_echoed(found["text"], found["path"]) or found[0], command)


def _break_echoed(text: str, path: str) -> str:
    from ollm.services.syntax_check import find_syntax_error

    body = text[1:-1]
    if r"\n" not in body:
        return ""
    plain = body.replace(r"\"", '"') if text[0] == '"' else body
    ending = path.rpartition(".")[2].lower()
    meant = ending in _PROSE or (
        ending in ("py", "json")
        and find_syntax_error(path, plain) is not None
        and find_syntax_error(path, plain.replace(r"\n", "\n").replace(r"\t", "\t")) is None
    )
    return rf"printf '%b\n' {text}" if meant else ""


def close_substitution(command: str) -> str:
    """With the slash that ends sed's `s/old/new`, without which it never runs."""
    return _OPEN_SUBSTITUTION.sub(r"\1/\2", command)


def drop_total(command: str) -> str:
    """The longest of several files, without the line that `wc` adds for all of them."""
    return _TOTALLED.sub(r"\1 | grep -v ' total$' | \2", command)


def separate_columns(command: str) -> str:
    """awk on a table with commas gets told so, where it asks for a column and was not told how they are separated."""
    table, mended = False, []
    for stage in _split_stages(command):
        table = table or ".csv" in stage
        bare = table and _AWK.match(stage) and _COLUMNS.search(stage) and not _SEPARATED.search(stage)
        mended.append(_AWK.sub(lambda found: f"{found[0]}-F, ", stage) if bare else stage)
        mended[-1] = _SORT.sub(r"\1-t, ", mended[-1]) if table else mended[-1]
        if _AWK.match(stage):
            table = table and "{" not in stage
        elif not _KEEPS_LINES.match(stage) and stage not in ("|", "||"):
            table = False
    return "".join(mended)


def _split_stages(command: str) -> list[str]:
    """The parts of a pipeline with what is between them, each its own; quotes hold together."""
    hidden = _QUOTED.sub(lambda found: "_" * len(found[0]), command)
    places = [0]
    for mark in re.finditer(r"\|+|;|&&|\n", hidden):
        places += [mark.start(), mark.end()]
    return [command[start:end] for start, end in zip(places, [*places[1:], len(command)], strict=True)]


def name_script(command: str, request: str, names: Collection[str]) -> str:
    """A script that is not there is the only one that the request names, or that the project has: models remember
    another one's name."""
    found = _SCRIPT.search(command)
    if found is None or found["path"] in request or found["path"].removeprefix("./") in names or "cd " in command:
        return command
    named = [name for name in dict.fromkeys(_SCRIPT_NAME.findall(request)) if name in names]
    meant: list[str] = named or [name for name in names if name.endswith(".py") and not is_test(name)]
    return command[: found.start("path")] + meant[0] + command[found.end("path") :] if len(meant) == 1 else command


def run_scripts(command: str, read: Callable[[str], str | None], runs: Callable[[str], bool]) -> str:
    """`count.sh` and `./count.sh` by their interpreter, where the shell would not find or not run them; `runs` says
    whether it would."""
    if "chmod" in command or "<<" in command or re.search(r"\bcd\s", command):
        return command
    return "".join(_run_script(stage, read, runs) for stage in _split_stages(command))


def _run_script(stage: str, read: Callable[[str], str | None], runs: Callable[[str], bool]) -> str:
    found = _BARE_SCRIPT.match(stage)
    text = read(found["path"].removeprefix("./")) if found else None
    if found is None or text is None or runs(found["path"]):
        return stage
    first = text.partition("\n")[0]
    bash = found["ending"] == "sh" and first.startswith("#!") and "bash" in first
    program = "bash" if bash else {"py": "python", "sh": "sh", "js": "node"}[found["ending"]]
    return f"{found['before']}{program} {found['path'].removeprefix('./')}{stage[found.end() :]}"


def print_answer(command: str, request: str, exists: Callable[[str], bool] = lambda _: False) -> str:
    """The answer to a question, and what a program prints, are shown, and not left in a file that nobody asked for; no
    file that is there is lost to them. What is written by hand stays where it is written."""
    from ollm.services.request_reading.explanations import is_question

    found = _LAST_FILE.search(command)
    if found is None or found["path"] in request or command.count(found["path"]) > 1 + bool(found["shown"]):
        return command
    if not is_question(request):
        added = found["mark"] == ">>" and exists(found["path"])
        wanted = _FILE_WANTED.search(request) is not None and not exists(found["path"])
        if added or wanted or not _PROGRAM.search(command):
            return command
    return command[: found.start()]


def names_as_target(command: str, path: str) -> bool:
    """Whether a command changes this file, as far as it can be seen: `sed -i … FILE`, `> FILE`, `rm FILE`."""
    stages = (stage for stage in re.split(r"&&|\|\||[;|\n]", _QUOTED.sub("_", command)) if path in stage)
    name = rf"(?<![\w/-])(?:\./)?{re.escape(path)}(?![\w/-]|\.\w)"
    return any(re.search(rf"(?:{_CHANGING}.*\s|>\s*){name}|\bcp\s.*\s{name}\s*$", stage) for stage in stages)


def count_alone(command: str, request: str) -> str:
    """`wc -w FILE > OUT` without the file's name behind the number, where the request wants a number in a file."""
    wanted = _NUMBER_WANTED.search(request) and not _NAME_WANTED.search(request)
    return _COUNT_INTO.sub(r"\1 < \2", command) if wanted and _INTO_FILE.search(command) else command


def write_as_json(content: str) -> str:
    """Lines `name: value` as the JSON that a file of that name must hold."""
    lines = [line.strip().rstrip(",") for line in content.strip().splitlines() if line.strip()]
    pairs = [_PAIR.fullmatch(line) for line in lines]
    if not pairs or not all(pairs):
        return content
    values = {pair[1]: _read_value(pair[2]) for pair in pairs if pair}
    return f"{json.dumps(values, indent=2, ensure_ascii=False)}\n"


def _read_value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("\"'")
