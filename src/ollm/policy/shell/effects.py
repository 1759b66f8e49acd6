"""What a simple command would do beyond its name: read outside, write, run something else, change the shell."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ollm.policy.shell import programs, scripts
from ollm.policy.shell.git import read_git
from ollm.policy.shell.model import Part
from ollm.policy.shell.options import Grammar, Scan, scan
from ollm.policy.shell.paths import NONE, Objections, PathJudge, selects_secrets
from ollm.policy.shell.programs import Program
from ollm.policy.shell.runners import INTERPRETERS
from ollm.policy.shell.tables import names
from ollm.policy.shell.words import Word, literal
from ollm.policy.shell.wrappers import SHELLS
from ollm.policy.shell.writers import targets

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_TEXT_OPTIONS = frozenset({"-m", "--message", "-am", "-b", "--body", "-t", "--title", "-e", "--grep", "--author"})
_SUBSCRIPT = r"\[.*(\$\(|`)"


def with_effects(part: Part, judge: PathJudge) -> Part:
    """The part with everything that its words give away."""
    name = program_name(part)
    return part if name is None else _looked_at(part, judge, name)


def _looked_at(part: Part, judge: PathJudge, name: str) -> Part:
    if name == "git":
        return _git(part, judge)
    if name in ("find", "gfind"):
        return _find(part, judge)
    if name == "sed":
        return _scripted(part, judge, scripts.sed_dangers(part.words), scripts.SED, ("e", "f", "expression", "file"))
    if name in _AWKS:
        return _scripted(part, judge, scripts.awk_dangers(part.words), scripts.AWK, ("f", "file"))
    known = programs.READING.get(name)
    return _other(part, judge, name) if known is None else _reading(part, judge, name, known)


def program_name(part: Part) -> str | None:
    """The program as it will be found, without a path before it; None when it is not known."""
    if not part.words or not part.words[0].static:
        return None
    return part.words[0].text.rsplit("/", 1)[-1]


def _add(
    part: Part, found: Objections, runs: Sequence[tuple[int, str]] = (), *, reads: bool = False, git: bool = False
) -> Part:
    locks = tuple(dict.fromkeys((*part.locks, *found.locks)))
    bare = bool(part.words) and "/" not in part.words[0].text
    return msgspec.structs.replace(
        part,
        remarks=tuple(dict.fromkeys((*part.remarks, *found.remarks))),
        locks=locks,
        runs=(*part.runs, *runs),
        reads=reads and bare and not part.may_differ,
        git=git,
    )


def _reading(part: Part, judge: PathJudge, name: str, program: Program) -> Part:
    found = scan(part.words, program.grammar)
    runs = [(one.index, _option_text(name, one.name)) for one in found.options if one.is_any(program.danger)]
    if program.danger or program.paths:
        runs += [(index, "an option may hide in it") for index in found.uncertain]
    objections = judge.here() if program.paths else sum((judge.names(word) for _, word in found.operands), NONE)
    for option in found.options:
        if option.value is not None and (option.value.glob or option.is_any(program.read_options)):
            objections += judge.read(option.value)
    skip = 0 if any(option.is_any(program.pattern_options) for option in found.options) else program.skip
    operands = [word for _, word in found.operands][skip:] if program.paths else []
    for word in operands:
        objections += judge.read(word)
    if program.output is not None and len(found.operands) > program.output:
        place, word = found.operands[program.output]
        runs.append((place, f"{name} writes {word.text}"))
        objections += judge.write(word)
    objections += _whole_trees(found, program, operands or [literal(".")], judge)
    if name in programs.EVALUATES and any(re.search(_SUBSCRIPT, word.text) for word in part.words[1:]):
        objections += Objections(remarks=("a subscript in it would be evaluated",))
    if part.may_differ and program.paths:
        objections += Objections(remarks=(f"what {name} reads is only known when it runs",))
    runs += _sets(name, [(place, word.text) for place, word in found.operands])
    return _add(part, objections, runs, reads=_only_asks(name, part))


def _whole_trees(found: Scan, program: Program, places: Sequence[Word], judge: PathJudge) -> Objections:
    """Secret files and links out in directories that are read with everything below them."""
    objections = NONE
    for option in found.options:
        chosen = option.value is not None and option.is_any(program.selecting) and selects_secrets(option.value)
        if chosen or option.is_any(program.deep):
            objections += sum((judge.tree(word) for word in places), NONE)
        if option.is_any(program.following):
            objections += sum((judge.links(word) for word in places), NONE)
    return objections


def _sets(name: str, operands: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Operands with which a program that tells something sets it, or tells too much."""
    if name == "hostname":
        return [(place, "it sets the computer's name") for place, _ in operands]
    if name == "date":
        return [(place, "it sets the clock") for place, text in operands if not text.startswith("+")]
    if name == "ps":
        return [(place, "it shows what other processes were given") for place, text in operands if "e" in text]
    return []


def _only_asks(name: str, part: Part) -> bool:
    """`command` is a reader only as `command -v NAME`."""
    return name != "command" or (len(part.words) > 2 and part.words[1].text in ("-v", "-V"))


def _option_text(name: str, option: str) -> str:
    return f"{name} {'-' if len(option) == 1 else '--'}{option} can run, write or read something else"


def _find(part: Part, judge: PathJudge) -> Part:
    objections = judge.here()
    runs: list[tuple[int, str]] = []
    words = part.words
    starting, index = True, 1
    while index < len(words):
        word = words[index]
        if word.text in programs.FIND_RUNS:
            runs.append((index, f"find {word.text} runs, writes or deletes"))
        elif word.text in ("-L", "-follow", "-files0-from"):
            runs.append((index, f"find {word.text} leads out of the workspace"))
        elif not word.static and word.might_be_option:
            runs.append((index, "an option may hide in it"))
        if word.text.startswith(("-", "(", ")", "!", ",")) and not re.fullmatch(r"-[HLP]|-O\d|-D|--", word.text):
            starting = False
        elif starting and not word.text.startswith("-"):
            objections += judge.read(word)
        valued = word.text in programs.FIND_VALUES or word.text in programs.FIND_FILES
        if valued and index + 1 < len(words):
            value = words[index + 1]
            objections += judge.read(value) if value.glob or word.text in programs.FIND_FILES else NONE
            runs += [(index + 1, "an option may hide in it")] if value.several else []
        index += 2 if valued else 1
    if part.may_differ:
        objections += Objections(remarks=("what find reads is only known when it runs",))
    return _add(part, objections, runs, reads=True)


def _scripted(
    part: Part, judge: PathJudge, runs: Sequence[tuple[int, str]], grammar: Grammar, giving: tuple[str, ...]
) -> Part:
    objections = judge.here()
    found = scan(part.words, grammar)
    files = [word for word in scripts.data_files(part.words, grammar, giving) if not _is_setting(word)]
    for word in files:
        objections += judge.read(word)
    for option in found.options:
        if option.is_any(("f", "file", "i", "include")) and option.value is not None and program_name(part) != "sed":
            objections += judge.read(option.value)
    name = program_name(part) or ""
    written = targets(name, part.words)
    for word in written.written:
        objections += judge.write(word)
    if part.may_differ:
        objections += Objections(remarks=(f"what {name} reads is only known when it runs",))
    uncertain = [(index, "an option may hide in it") for index in found.uncertain]
    return _add(part, objections, [*runs, *uncertain], reads=True)


def _is_setting(word: Word) -> bool:
    return word.static and re.match(r"[A-Za-z_]\w*=", word.text) is not None


def _git(part: Part, judge: PathJudge) -> Part:
    found = read_git(part.words)
    objections = judge.here()
    subcommand = None if found.subcommand is None else part.words[found.subcommand].text
    if found.reads or subcommand == "add":
        for word in found.paths:
            objections += judge.read(word)
    else:
        objections += _git_writes(part, judge, found.subcommand)
    if not found.reads and subcommand == "config":
        objections += Objections(locks=("it changes git's configuration, which is protected",))
    if part.may_differ:
        objections += Objections(remarks=("what git is told is only known when it runs",))
    return _add(part, objections, found.dangers, reads=found.reads, git=True)


_GIT_WRITING = frozenset({"checkout", "restore", "rm", "mv", "clean", "apply", "init", "clone", "worktree"})


def _git_writes(part: Part, judge: PathJudge, subcommand: int | None) -> Objections:
    """Protected files named to a git command that changes the work tree."""
    if subcommand is None or part.words[subcommand].text not in _GIT_WRITING:
        return NONE
    found = NONE
    for word in part.words[subcommand + 1 :]:
        if not word.text.startswith("-"):
            found += judge.protected(word)
    return found


def _other(part: Part, judge: PathJudge, name: str) -> Part:
    if _asks_for_version(name, part.words):
        return _add(part, NONE, reads=True)
    objections = (
        Objections(remarks=(f"{name} {programs.CHANGES_SHELL[name]}",)) if name in programs.CHANGES_SHELL else NONE
    )
    if (name in SHELLS or name in INTERPRETERS) and _reads_script(part):
        objections += Objections(remarks=(f"{name} runs what it reads",))
    named = targets(name, part.words)
    for word in named.written:
        objections += judge.write(word)
    for word in named.removed:
        objections += judge.remove(word)
    for word in named.read:
        objections += judge.read(word)
    if not named.written and not named.read:
        objections += _mentions(part, judge)
    return _add(part, objections, _running(name, part.words))


def _asks_for_version(name: str, words: Sequence[Word]) -> bool:
    asked = words[1].text if len(words) == 2 else ""
    return (name in programs.VERSIONS and asked in programs.VERSION_OPTIONS) or (name, asked) in programs.VERSION_WORDS


def _reads_script(part: Part) -> bool:
    """A shell or interpreter without a script of its own: it runs its input, or what another command prints."""
    words = [word for word in part.words[1:] if not word.text.startswith(("-", "+"))]
    streams = [word for word in words[:1] if word.descriptor or word.text in ("/dev/stdin", "/dev/fd/0")]
    return not words or bool(streams) or any(word.text in ("-s", "-") for word in part.words)


_RUNNING_OPTIONS: dict[str, tuple[str, str]] = {  # long ones, which may be abbreviated, and an expression for the rest
    "tar": (
        "to-command checkpoint-action use-compress-program rsh-command rmt-command info-script new-volume-script",
        r"-[A-Za-z]*[IF].*",
    ),
    "env": ("chdir split-string", r"-[a-zA-Z0-9]*[CS].*"),
    "rsync": ("rsh rsync-path", r"-[a-zA-Z]*e.*"),
    "make": ("eval file makefile directory include-dir", r"-[a-zA-Z]*[fCI].*|SHELL=.*"),
    "ssh": ("", r"-[oFS].*"),
    "scp": ("", r"-[oSFD].*"),
    "man": ("pager html browser config-file", r"-[a-zA-Z]*[PHC].*"),
    "perl": ("", r"-[a-zA-Z0-9]*[eEiMm].*"),
    "ruby": ("", r"-[a-zA-Z0-9]*[eir].*"),
    "zip": ("unzip-command", r"-T+.*"),
    "gcc": ("", r"-wrapper|-B.*|-specs.*|-fplugin.*"),
}


def _running(name: str, words: Sequence[Word]) -> list[tuple[int, str]]:
    if name not in _RUNNING_OPTIONS:
        return []
    longs, expression = _RUNNING_OPTIONS[name]
    return [
        (index, f"{name} {word.text} can run something else")
        for index, word in enumerate(words[1:], 1)
        if _abbreviates(word.text, names(longs)) or re.fullmatch(expression, word.text, re.DOTALL)
    ]


def _abbreviates(text: str, longs: Sequence[str]) -> bool:
    given = text[2:].partition("=")[0] if text.startswith("--") else ""
    return bool(given) and any(one.startswith(given) for one in longs)


def _mentions(part: Part, judge: PathJudge) -> Objections:
    """Protected files named to a program of which nothing is known."""
    found = NONE
    texts = [word.text for word in part.words]
    for index, word in enumerate(part.words[1:], 1):
        if texts[index - 1] in _TEXT_OPTIONS or (word.quoted and " " in word.text):
            continue
        value = word.text.partition("=")[2] if word.text.startswith("-") or "=" in word.text else word.text
        if value:
            found += judge.protected(msgspec.structs.replace(word, text=value))
    return found
