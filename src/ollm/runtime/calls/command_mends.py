"""Commands of small models without the slips that make them say something else than was meant. Pure.

Only what cannot have been meant is mended: a substitution that never ends, a table split at blanks that it does not
have, the sum of all files taken for one of them.
"""

from __future__ import annotations

import re

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
_PROSE = frozenset(("txt", "md", "csv", "yaml", "yml", "ini", "toml", "env", "conf", "cfg", "log"))


def mend_command(command: str) -> str:
    """The command as it was meant."""
    return break_lines(separate_columns(drop_total(close_substitution(command))))


def break_lines(command: str) -> str:
    r"""`echo "a\nb" > FILE` with the two lines that are meant, where the file would hold a backslash instead."""
    return _ECHOED.sub(lambda found: _break_echoed(found["text"], found["path"]) or found[0], command)


def _break_echoed(text: str, path: str) -> str:
    from ollm.services.syntax_check import find_syntax_error

    body = text[1:-1]
    if r"\n" not in body:
        return ""
    plain = body.replace(r"\"", '"') if text[0] == '"' else body
    ending = path.rsplit(".", 1)[-1].lower()
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
    if ".csv" not in command or "awk" not in command:
        return command
    table, mended = False, []
    for stage in _split_stages(command):
        table = table or ".csv" in stage
        bare = table and _AWK.match(stage) and _COLUMNS.search(stage) and not _SEPARATED.search(stage)
        mended.append(_AWK.sub(lambda found: f"{found[0]}-F, ", stage, count=1) if bare else stage)
        if _AWK.match(stage):
            table = table and "{" not in stage
        elif not _KEEPS_LINES.match(stage) and stage not in ("|", "||"):
            table = False
    return "".join(mended)


def _split_stages(command: str) -> list[str]:
    """The parts of a pipeline with what stands between them, each its own; quotes hold together."""
    hidden = _QUOTED.sub(lambda found: "_" * len(found[0]), command)
    places = [0]
    for mark in re.finditer(r"\|+|;|&&|\n", hidden):
        places += [mark.start(), mark.end()]
    return [command[start:end] for start, end in zip(places, [*places[1:], len(command)], strict=True)]
