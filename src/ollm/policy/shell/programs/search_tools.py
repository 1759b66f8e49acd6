"""Programs that search files and trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.options import OptionScan, scan_options
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections
from ollm.policy.shell.programs.inner_commands import make_guess
from ollm.policy.shell.programs.record import (
    InnerCommand,
    Program,
    Reading,
    WordDangers,
    Writing,
    find_targets,
    list_options,
    read_files,
    share_record,
    split_names,
)
from ollm.policy.shell.programs.system_tools import find_jq_dangers
from ollm.policy.shell.words import UNKNOWN_WORD, ShellWord


def _unwrap_fd(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    for index, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            command = tuple(
                UNKNOWN_WORD if one.text.startswith("{") else one for one in words[index + 1 :] if one.text != ";"
            )
            return [InnerCommand(words=command, more=True)] if command else []
    return []


_GREP = read_files(
    "efmABCdD",
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case"
    " word-regexp line-regexp null-data no-messages invert-match max-count= byte-offset line-number"
    " line-buffered with-filename no-filename label= only-matching quiet silent binary-files= text directories="
    " devices= recursive dereference-recursive include= exclude= exclude-from= exclude-dir= files-without-match"
    " files-with-matches count initial-tab null before-context= after-context= context= group-separator="
    " no-group-separator color? colour? binary unix-byte-offsets",
    flags="EFGPivwxyclLnHhobqsrRTUzZaIVu0123456789",
    skip=1,
    pattern_options=("e", "f", "regexp", "file"),
    read_options=("f", "file", "exclude-from"),
    walks=("r", "R", "recursive", "dereference-recursive", "d", "directories"),
    selecting=("include",),
    following=("R", "dereference-recursive"),
)

SEARCH_TOOLS: dict[str, Program] = {
    **share_record("grep egrep fgrep", _GREP),
    "zgrep": read_files(
        "emABC",
        "extended-regexp fixed-strings ignore-case word-regexp line-regexp invert-match max-count= line-number"
        " count with-filename no-filename only-matching quiet silent files-with-matches files-without-match regexp=",
        flags="EFGPivwxyclLnHhobqsTaZ0123456789",
        skip=1,
        pattern_options=("e", "regexp"),
        danger=("r", "R", "recursive", "dereference-recursive", "f", "file", "d", "directories"),
    ),
    "jq": read_files(
        "Lf",
        "compact-output color-output monochrome-output ascii-output sort-keys join-output null-input raw-input"
        " raw-output raw-output0 slurp exit-status tab indent= stream stream-errors seq unbuffered from-file= arg"
        " argjson args jsonargs slurpfile rawfile argfile build-configuration binary strip-comments",
        flags="cCMaSjhVnrResb",
        skip=1,
        pattern_options=("f", "from-file"),
        read_options=("f", "from-file", "L"),
        danger=("L", "slurpfile", "rawfile", "argfile", "library-path"),
        evaluate=find_jq_dangers,
        versioned=True,
    ),
    "rg": read_files(
        "efgtTABCmMjrEd",
        "regexp= file= glob= iglob= type= type-not= after-context= before-context= context= max-count= max-columns="
        " threads= replace= encoding= max-depth= maxdepth= ignore-file= sort= sortr= color= colors= engine="
        " max-filesize= type-add= type-clear= path-separator= context-separator= field-match-separator="
        " field-context-separator= dfa-size-limit= regex-size-limit= hyperlink-format= generate= stop-on-nonmatch"
        " auto-hybrid-regex binary block-buffered byte-offset case-sensitive column count count-matches crlf debug"
        " files files-with-matches files-without-match fixed-strings glob-case-insensitive heading hidden"
        " ignore-case ignore-file-case-insensitive include-zero invert-match json line-buffered line-number"
        " line-regexp max-columns-preview mmap multiline multiline-dotall no-config no-filename no-heading no-ignore"
        " no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent"
        " no-ignore-vcs no-line-number no-messages no-mmap no-require-git no-unicode null null-data one-file-system"
        " only-matching passthru pcre2 pcre2-version pretty quiet smart-case stats text trace trim type-list"
        " unrestricted vimgrep with-filename word-regexp no-column no-hidden no-json no-trim no-stats pre= pre-glob="
        " hostname-bin= search-zip follow no-follow no-pre no-search-zip",
        flags="abcFhHiIlnNopPqsSUvVwx0uL.",
        skip=1,
        pattern_options=("e", "f", "regexp", "file", "files", "type-list"),
        read_options=("f", "file", "ignore-file"),
        danger=("pre", "hostname-bin", "z", "search-zip", "L", "follow"),
        deep=("hidden", "u", ".", "unrestricted"),
        selecting=("g", "glob", "iglob"),
        commands="--pre --hostname-bin",
        versioned=True,
    ),
    **share_record(
        "fd fdfind",
        read_files(
            "dteEcSojCT",
            "max-depth= min-depth= exact-depth= type= extension= exclude= color= owner= size= changed-within="
            " changed-before= newer= older= change-newer-than= change-older-than= threads= base-directory= search-path="
            " ignore-file= format= batch-size= max-results= path-separator= and= strip-cwd-prefix? hyperlink? hidden"
            " no-hidden no-ignore no-ignore-vcs no-ignore-parent no-require-git no-global-ignore-file unrestricted"
            " case-sensitive ignore-case glob regex fixed-strings absolute-path relative-path list-details follow"
            " full-path print0 prune quiet show-errors one-file-system exec exec-batch",
            flags="HIuspiFagl0q1hVxXL",
            skip=1,
            danger=("x", "X", "exec", "exec-batch", "L", "follow"),
            read_options=("C", "base-directory", "search-path", "ignore-file"),
            find_commands=_unwrap_fd,
            versioned=True,
        ),
    ),
    "ag": read_files(
        "ABCGmp",
        "ackmate all-text all-types after= before= case-sensitive color nocolor column count depth="
        " file-search-regex= filename nofilename files-with-matches files-without-matches fixed-strings group"
        " nogroup heading noheading hidden ignore= ignore-case ignore-dir= invert-match literal max-count="
        " no-numbers numbers nonumbers one-device only-matching path-to-ignore= print-long-lines print0 silent"
        " smart-case stats unrestricted vimgrep width= word-regexp pager= search-zip search-binary follow"
        " skip-vcs-ignores context?",
        flags="acHiLlnoQSsuUtvwWzfgFRr0123456789",
        skip=1,
        danger=("pager", "z", "search-zip", "f", "follow"),
        deep=("u", "hidden", "unrestricted", "U", "a", "all-types"),
        read_options=("p", "path-to-ignore"),
    ),
}

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


def _inspect_find(part: CommandPart, judge: PathJudge) -> CommandPart:
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


def _unwrap_find(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    inner: list[InnerCommand] = []
    for start in [index for index, word in enumerate(words) if word.text in _RUNNING]:
        end = start + 1
        while end < len(words) and words[end].text != ";" and not _ends_with_braces(words, end):
            end += 1
        command = tuple(UNKNOWN_WORD if word.text == "{}" else word for word in words[start + 1 : end])
        inner += [InnerCommand(words=command, more=True)] if command else []
    return inner


def _ends_with_braces(words: Sequence[ShellWord], index: int) -> bool:
    return words[index].text == "+" and words[index - 1].text == "{}"


FIND_TOOLS: dict[str, Program] = share_record("find gfind", Program(inspect=_inspect_find, find_commands=_unwrap_find))


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


def _inspect_sed(part: CommandPart, judge: PathJudge) -> CommandPart:
    return _inspect_script(SED, "sed", part, judge, lambda text: re.fullmatch(_PLAIN_SED, text) is not None)


def _inspect_awk(part: CommandPart, judge: PathJudge) -> CommandPart:
    return _inspect_script(AWK, "awk", part, judge, _only_prints)


def _only_prints(program: str) -> bool:
    """Return True if an awk program neither redirects its output nor runs anything. A statement continues on the next
    line after a comma. Where a regular expression or a comment may be, the start of a string is uncertain."""
    bare = re.sub(_AWK_STRING, "0", program)
    sure = not set(bare) & set('"/#\\')
    redirects = re.search(r"\bprintf?\b[^;}]*>" if sure else r"(?s)print.*>", bare if sure else program)
    return redirects is None and re.search(_AWK_ACTS, program) is None


def _inspect_script(
    record: Program, name: str, part: CommandPart, judge: PathJudge, is_plain: Callable[[str], bool]
) -> CommandPart:
    """Inspect a command with one script word, unless options give the script; the other words are files."""
    reading = record.reads or Reading()
    found = scan_options(part.words, record.options)
    programs, files = _split_operands(found, reading)
    runs: WordDangers = [
        (one.index, f"{name} -{one.name} writes files, or runs what cannot be checked")
        for one in found.options
        if one.is_any(reading.danger)
    ]
    for index, word in programs:
        if not word.static or not is_plain(word.text):
            runs.append((index, f"the {name} program may write, read other files or run commands"))
    runs += [(index, "it may contain an option") for index in found.uncertain]
    objections = judge.check_directory()
    objections += sum((judge.check_read(word) for word in files if not _is_setting(word)), NO_OBJECTIONS)
    for option in found.options:
        if option.value is not None and option.is_any(reading.read_options):
            objections += judge.check_read(option.value)
    objections += sum((judge.check_write(word) for word in find_targets(record, part.words).written), NO_OBJECTIONS)
    if part.may_differ:
        objections += Objections(remarks=(f"what {name} reads is computed at run time",))
    unknown = [f"it is not known what {name} {one.spelled} does" for one in found.unknown]
    return add_objections(part, objections, runs, reads=True, unknown=unknown)


def _split_operands(found: OptionScan, reading: Reading) -> tuple[list[tuple[int, ShellWord]], list[ShellWord]]:
    """Return the scripts, each with its index, and the files."""
    giving = [option for option in found.options if option.is_any(reading.pattern_options)]
    if not giving:
        return list(found.operands[:1]), [word for _, word in found.operands[1:]]
    return [(one.index, one.value) for one in giving if one.value], [word for _, word in found.operands]


def _is_setting(word: ShellWord) -> bool:
    return word.static and re.match(r"[A-Za-z_]\w*=", word.text) is not None


def _find_in_awk(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    found = (match[0] or match[1] for word in words[1:] for match in re.findall(_AWK_RUNS, word.text))
    return [make_guess(text) for text in found if text.strip()]


def _find_in_sed(_program: Program, words: Sequence[ShellWord]) -> list[InnerCommand]:
    replaced = [match[1] for word in words[1:] for match in re.findall(_SED_REPLACES, word.text)]
    run = [text for word in words[1:] for text in re.findall(_SED_RUNS, word.text)]
    return [make_guess(text) for text in (*run, *replaced) if text.strip()]


SED = Program(
    options=list_options(
        "efl",
        "quiet silent debug expression= file= regexp-extended in-place? follow-symlinks line-length= posix separate"
        " sandbox unbuffered null-data zero-terminated binary",
        "i",
        flags="nErsuzb",
    ),
    reads=Reading(danger=("i", "in-place", "f", "file"), pattern_options=("e", "f", "expression", "file")),
    writes=Writing(shape="all", skip=1, skip_options=("e", "f", "expression", "file"), needs=("i", "in-place")),
    inspect=_inspect_sed,
    find_commands=_find_in_sed,
    versioned=True,
)
AWK = Program(
    options=msgspec.structs.replace(
        list_options(
            "fvFilLoEDWe",
            "file= assign= field-separator= include= load= exec= source= dump-variables? profile? pretty-print? debug?"
            " lint? characters-as-bytes traditional copyright gen-pot trace csv bignum use-lc-numeric"
            " non-decimal-data optimize posix re-interval no-optimize sandbox lint-old",
            flags="bcCghIkMNnOPrsStVdpo",
        ),
        stops=True,
    ),
    reads=Reading(
        danger=(
            *"WfiloDELepdIg",
            *split_names("file include load exec source dump-variables profile pretty-print debug trace gen-pot"),
        ),
        pattern_options=("f", "file"),
        read_options=("f", "file", "i", "include"),
    ),
    inspect=_inspect_awk,
    find_commands=_find_in_awk,
    versioned=True,
)

SCRIPT_TOOLS: dict[str, Program] = {"sed": SED, "gsed": SED, **share_record("awk gawk mawk nawk", AWK)}
