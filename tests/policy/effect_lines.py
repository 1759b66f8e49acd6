"""Lines for a real bash, made from what programs tell of themselves and from a grammar of values.

Every option of every reading program on this machine with operands of many shapes; and words that bash evaluates where a
number, a name or a subscript is expected.
"""

import itertools
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache

from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.record import read_table

BUILTINS = frozenset({"echo", "printf", "test", "[", "type", "command", "cd", "pwd", ":", "true", "false"})
GIT = (
    "status",
    "diff",
    "log",
    "show",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "blame",
    "grep",
    "cat-file",
    "branch",
    "tag",
)
SHAPES = (
    "{p} {o} a", "{p} {o} KEY", "{p} {o} KEY a", "{p} {o} a KEY", "{p} a KEY {o}", "{p} {o} a OUT/new", "{p} {o} a new",
    "{p} {o}=KEY a", "{p} {o}KEY a", "{p} {o}=OUT/new a", "{p} {o}OUT/new a", "{p} {o} -- KEY", "{p} a {o}", "{p} {o}",
    "{p} {o} x KEY", "{p} {o} 1 KEY", "{p} {o} link", "{p} {o} '*' KEY", "{p} {o} @KEY", "{p} {o} . dir",
    "{p} {o} names", "{p} {o}=names", "{p} {o} sums", "{p} {o} ~/.ssh/id_rsa", "{p} {o}=~/.ssh/id_rsa", "{p} {o} dir/*",
    "{p} {o} ../home/.ssh/id_rsa", "{p} x {o} dir", "{p} {o} a a new", "cat names | {p} {o}", "{p} {o} - < names",
    "cd dir; {p} {o} link", "{p} {o} 'p' KEY", "{p} p {o} new a", '{p} {o} "$HOME/.ssh/id_rsa"', "{p} {o} {{a,KEY}}",
)  # fmt: skip
SOURCES = (
    '"$(cat payload)"', "$(cat payload)", "'a[$(touch MARK)]'", "1 2", "*", "$(ls)", "{1..3}", "1 $(cat payload)", "-v",
    "pay*", "x", "{0..payload}", "'x=a[$(touch MARK)]'", "`cat payload`", "$_", "~", "'@P'",
)  # fmt: skip
VALUES = (
    "x", "$x", '"$x"', "x+1", "${x}", "$(cat payload)", "1", "${#x}", "x[0]", "_", "$_", "x=1", "${x:-1}", "'x'", "x++",
    "x?1:2", "${x[0]}", "x,1", "(x)", "-x", "${!x}", "RANDOM", "$#", "x==1", "16#x", "${x@P}", "$((x))", "${x%%1}", "\\x",
)  # fmt: skip
CONTEXTS = (
    "echo $(({v}))", "(({v}))", "echo ${HOME:{v}:1}", "echo ${HOME:0:{v}}", "echo ${BASH_VERSINFO[{v}]}", "echo $[{v}]",
    "[[ {v} -eq 1 ]]", "[[ 1 -lt {v} ]]", "[[ -v {v} ]]", "test -v {v}", "[ -v {v} ]", "[ {v} -gt 1 ]", "echo ${!x}",
    "for ((i={v};i<2;i++)); do :; done", "for ((i=0;i<{v};i++)); do break; done", "printf '%d' {v}", "printf {v} x",
    "test {v}", "test {v} {v}", "[ {v} ]", "cat <<< $(({v}))", "echo {{1..{v}}}", "echo ${BASH_VERSINFO[@]:{v}}",
    "[[ {v} == 1 ]]", "case {v} in 1) ;; esac", "echo {v}", ": ${BASH_VERSINFO[{v}]:-$(({v}))}", "[[ -n {v} ]]",
    "cat <<E\n$(({v}))\nE", "echo ${@:{v}}", 'echo "${BASH_VERSINFO[{v}]}"', "[[ -o {v} ]]", "seq {v}", "type {v}",
    "echo ${#BASH_VERSINFO[{v}]}", "[[ {v} -nt a ]]", "[[ -t {v} ]]", "test -t {v}", "printf '%s' $(({v}))",
    "echo ${HOME/{v}/{v}}", "echo ${x^^{v}}", "while (({v})); do break; done", "echo $(( {v} ? 1 : 2 ))", "head -n {v} a",
)  # fmt: skip


def list_programs() -> list[str]:
    """Those that may run unasked and are on this machine."""
    records = {name: get_program(name) for name in (*read_table(), "git")}
    reading = [name for name, one in records.items() if one.reads is not None or one.inspect is not None]
    found = [name for name in sorted(reading) if name in BUILTINS or shutil.which(name)]
    return [*(name for name in found if name != "git"), *(f"git {one}" for one in GIT if "git" in found)]


def list_options(program: str) -> list[str]:
    """The options that a program tells of itself, and those of its record."""
    known = get_program(program.split(maxsplit=1)[0]).options
    letters = [f"-{letter}" for letter in (known.flags or "") + known.values + known.joined]
    longs = [f"--{name}" for name in (*known.known, *known.long_values, *known.optional)]
    told = [] if program in BUILTINS else re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", _ask_for_help(program))
    return list(dict.fromkeys([*letters, *longs, *told, "-é", "--nobody-knows"]))


def _ask_for_help(program: str) -> str:
    asks = [[*program.split(), "-h"], [*program.split(), "--git-completion-helper-all"]]
    told = ""
    for words in asks if program.startswith("git ") else [[program, "--help"]]:
        done = subprocess.run(words, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        told += (done.stdout + done.stderr).decode("utf-8", "replace")
    return told


@cache
def list_option_lines() -> tuple[str, ...]:
    return tuple(
        shape.format(p=program, o=option)
        for program in list_programs()
        for option, shape in itertools.product(list_options(program), SHAPES)
    )


def make_value_lines() -> Iterator[str]:
    for source, context, value in itertools.product(SOURCES, CONTEXTS, VALUES):
        line = context.replace("{v}", value).replace("{{", "{").replace("}}", "}")
        yield f"for x in {source}; do {line}\ndone"
        yield f"for x in 1 2; do for x in {source}; do :; done; {line}\ndone"
        yield f": {source}; {line}"


QUOTE_PIECES = (
    '"', "'", "${x:-", "${x#", "${x/a/", "}", "; touch MARK ", "\n touch MARK\n", "#", "\\", "$(", ")", "`", "$'", '$"', "a",
    " ", "<<< ", "<<E\n", "E\n", "\nE\n", "((", "))", "[[ ", " ]]", "${x", "[", "]", "|", "&", "(", "{", "$((", "~", "!", "=",
)  # fmt: skip


def make_quote_lines(chance: random.Random, count: int) -> Iterator[str]:
    """Quotes, expansions and here-documents in any order, around a command: two parsers must not take it for text."""
    for _ in range(count):
        pieces = chance.choices(QUOTE_PIECES, k=chance.randint(3, 9))
        pieces.insert(chance.randint(0, len(pieces)), "; touch MARK ")
        yield "echo " + "".join(pieces)
