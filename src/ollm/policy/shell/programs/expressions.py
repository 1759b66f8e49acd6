"""Checks of programs whose words form expressions: find, fd, sed, awk, jq, test and printf."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections
from ollm.policy.shell.programs.inner_commands import make_guess
from ollm.policy.shell.programs.record import InnerCommand, Program, WordDangers, split_names
from ollm.policy.shell.words import UNKNOWN_WORD, ShellWord


def unwrap_fd(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    for index, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            command = tuple(
                UNKNOWN_WORD if one.text.startswith("{") else one for one in words[index + 1 :] if one.text != ";"
            )
            return [InnerCommand(words=command, more=True)] if command else []
    return []


_RUNNING = ("-exec", "-execdir", "-ok", "-okdir")
_WRITING = ("-fls", "-fprint", "-fprint0", "-fprintf")
_LEAVING = ("-L", "-follow", "-files0-from")
_FILE_TESTS = ("-newer", "-anewer", "-cnewer", "-samefile", "-files0-from")
_VALUE_TESTS = frozenset(
    split_names(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime"
        " -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -maxdepth -mindepth -links -inum -fstype -used"
        " -printf -regextype -context -D"
    )
)


def inspect_find(part: CommandPart, judge: PathJudge) -> CommandPart:
    objections = judge.check_directory()
    if part.may_differ:
        objections += Objections(remarks=("what find reads is computed at run time",))
    runs: WordDangers = []
    words, starting, index = part.words, True, 1
    while index < len(words):
        word = words[index]
        runs += [(index, reason) for reason in _find_dangers(word)]
        if word.text.startswith(("-", "(", ")", "!", ",")) and not re.fullmatch(r"-[HLP]|-O\d|-D|--", word.text):
            starting = False
        elif starting and not word.text.startswith("-"):
            objections += judge.check_read(word)
        valued = word.text in _VALUE_TESTS or word.text in (*_FILE_TESTS, *_WRITING)
        if valued and index + 1 < len(words):
            value = words[index + 1]
            objections += _check_value(word.text, value, judge)
            runs += [(index + 1, "it may contain an option")] if value.several else []
        index += 2 if valued else 1
    return add_objections(part, objections, runs, reads=True)


def _check_value(test: str, value: ShellWord, judge: PathJudge) -> Objections:
    if test in _WRITING:
        return judge.check_write(value)
    return judge.check_read(value) if value.glob or test in _FILE_TESTS else NO_OBJECTIONS


def _find_dangers(word: ShellWord) -> list[str]:
    if word.text in (*_RUNNING, *_WRITING, "-delete"):
        return [f"find {word.text} runs, writes or deletes"]
    if word.text in _LEAVING:
        return [f"find {word.text} leaves the workspace"]
    return ["it may contain an option"] if not word.static and word.might_be_option else []


def unwrap_find(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    inner: list[InnerCommand] = []
    for start in [index for index, word in enumerate(words) if word.text in _RUNNING]:
        end = start + 1
        while (
            end < len(words) and words[end].text != ";" and not (words[end].text == "+" and words[end - 1].text == "{}")
        ):
            end += 1
        command = tuple(UNKNOWN_WORD if word.text == "{}" else word for word in words[start + 1 : end])
        inner += [InnerCommand(words=command, more=True)] if command else []
    return inner


_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*|\\%(?:[^%\\\n]|\\.)*%)"
_RANGE = rf"(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
_REPLACE = "|".join(
    rf"s{mark}(?:[^{mark}\\\n]|\\.)*{mark}(?:[^{mark}\\\n]|\\.)*{mark}[gpiIM0-9]*"
    for mark in ("/", r"\|", "#", ",", ":")
)
_TRANSLATE = r"y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/"
_SED_COMMAND = rf"{_RANGE}\{{?\s*(?:[pPdDqQ=nNgGhHxlz](?:\s*\d+)?|{_REPLACE}|{_TRANSLATE})\s*\}}?"
_PLAIN_SED = rf"\s*(?:{_SED_COMMAND})(?:\s*[;\n]\s*(?:{_SED_COMMAND}))*\s*;?\s*"
_SED_RUNS = r"(?:^|[;{}\d$/!\s])e\s+([^\n]+)"
_SED_REPLACES = r"s([^\w\s\\])(?:[^\\\n]|\\.)*?\1((?:[^\\\n]|\\.)*?)\1\w*e"
_AWK_ACTS = r"system|getline|\bclose\b|fflush|@|ARGV|ARGC|ENVIRON|PROCINFO|\|(?!\|)(?<!\|\|)|\bextension\b"
_AWK_STRING = r'"(?:[^"\\\n]|\\.)*"'
_AWK_RUNS = r"""(?:system\s*\(\s*|\|\s*(?:getline|&)?\s*)"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|"""


def is_plain_sed(script: str) -> bool:
    return re.fullmatch(_PLAIN_SED, script) is not None


def is_plain_awk(program: str) -> bool:
    """Return True if an awk program neither redirects its output nor runs anything. A statement continues on the next
    line after a comma. Where a regular expression or a comment may be, the start of a string is uncertain."""
    bare = re.sub(_AWK_STRING, "0", program)
    sure = not set(bare) & set('"/#\\')
    redirects = re.search(r"\bprintf?\b[^;}]*>" if sure else r"(?s)print.*>", bare if sure else program)
    return redirects is None and re.search(_AWK_ACTS, program) is None


def unwrap_awk(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    found = (match[0] or match[1] for word in words[1:] for match in re.findall(_AWK_RUNS, word.text))
    return [make_guess(text) for text in found if text.strip()]


def unwrap_sed(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    replaced = [match[1] for word in words[1:] for match in re.findall(_SED_REPLACES, word.text)]
    run = [text for word in words[1:] for text in re.findall(_SED_RUNS, word.text)]
    return [make_guess(text) for text in (*run, *replaced) if text.strip()]


_PLAIN_NAME = r"[A-Za-z_]\w*(\[\d+\])?"
_COUNT_FORMAT = r"%[^%A-Za-z]*[hlqjztL]*n"
_JQ_MODULE = r"(?<![\w.$\"])(import|include|modulemeta|get_search_list|input_filename)\b"
_NAME_TESTS = frozenset({"-v", "-R"})


def find_test_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """Find words after `-v`, which evaluates a name's subscript; an unknown word may be `-v`."""
    found = [(place, "its words are only known when it runs") for place, word in enumerate(words) if word.several]
    ends = len(words) - (words[0].text == "[")
    for place in range(2, ends):
        before, word = words[place - 1], words[place]
        may_name = before.text in _NAME_TESTS or (not before.static and before.might_be_option)
        plain = word.static and not word.glob and "[" not in word.text
        named = word.static and not word.glob and re.fullmatch(_PLAIN_NAME, word.text)
        if (before.text in _NAME_TESTS and not named) or (may_name and not plain and not named):
            found.append((place, "a name in it is evaluated when it runs"))
    return found


def find_printf_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """Find `%n`, which sets a variable, possibly `PATH`."""
    place = 2 if len(words) > 2 and words[1].text == "--" else 1
    if len(words) <= place:
        return []
    form = words[place]
    unknown = not form.static or form.glob
    if unknown and len(words) == place + 1 and not form.several and not form.glob:
        return []  # Without a second word there is no variable to set.
    if unknown or re.search(_COUNT_FORMAT, form.text):
        return [(place, "printf may set a variable")]
    return []


def find_status_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """Find exit statuses that are not numbers: some shells evaluate them. `exit 1` and `exit $?` are safe."""
    written = [(place, word) for place, word in enumerate(words[1:], 1) if word.static]
    return [(place, "its status is no number") for place, word in written if not word.text.isdecimal()]


def find_jq_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """Find modules and files that a jq program names."""
    places = [place for place, word in enumerate(words[1:], 1) if re.search(_JQ_MODULE, word.text)]
    return [(place, "the jq program may read other files") for place in places]
