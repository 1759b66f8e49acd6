"""Programs that search files and trees."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.model import CommandPart
from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, add_objections
from ollm.policy.shell.programs.record import InnerCommand, Program, WordDangers, read_files, share_record, split_names
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
    "EFGPivwxyclLnHhobqsrRTUzZaIVu0123456789",
    "efmABCdD",
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case word-regexp"
    " line-regexp null-data no-messages invert-match max-count= byte-offset line-number line-buffered with-filename"
    " no-filename label= only-matching quiet silent binary-files= text directories= devices= recursive"
    " dereference-recursive include= exclude= exclude-from= exclude-dir= files-without-match files-with-matches count"
    " initial-tab null before-context= after-context= context= group-separator= no-group-separator color? colour?"
    " binary unix-byte-offsets",
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
        "EFGPivwxyclLnHhobqsTaZ0123456789",
        "emABC",
        "extended-regexp fixed-strings ignore-case word-regexp line-regexp invert-match max-count= line-number count"
        " with-filename no-filename only-matching quiet silent files-with-matches files-without-match regexp=",
        skip=1,
        pattern_options=("e", "regexp"),
        danger=("r", "R", "recursive", "dereference-recursive", "f", "file", "d", "directories"),
    ),
    "jq": read_files(
        "cCMaSjhVnrResb",
        "Lf",
        "compact-output color-output monochrome-output ascii-output sort-keys join-output null-input raw-input"
        " raw-output raw-output0 slurp exit-status tab indent= stream stream-errors seq unbuffered from-file= arg"
        " argjson args jsonargs slurpfile rawfile argfile build-configuration binary strip-comments",
        skip=1,
        pattern_options=("f", "from-file"),
        read_options=("f", "from-file", "L"),
        danger=("L", "slurpfile", "rawfile", "argfile", "library-path"),
        evaluate=find_jq_dangers,
        versioned=True,
    ),
    "rg": read_files(
        "abcFhHiIlnNopPqsSUvVwx0uL.",
        "efgtTABCmMjrEd",
        "regexp= file= glob= iglob= type= type-not= after-context= before-context= context= max-count= max-columns="
        " threads= replace= encoding= max-depth= maxdepth= ignore-file= sort= sortr= color= colors= engine="
        " max-filesize= type-add= type-clear= path-separator= context-separator= field-match-separator="
        " field-context-separator= dfa-size-limit= regex-size-limit= hyperlink-format= generate= stop-on-nonmatch"
        " auto-hybrid-regex binary block-buffered byte-offset case-sensitive column count count-matches crlf debug"
        " files files-with-matches files-without-match fixed-strings glob-case-insensitive heading hidden ignore-case"
        " ignore-file-case-insensitive include-zero invert-match json line-buffered line-number line-regexp"
        " max-columns-preview mmap multiline multiline-dotall no-config no-filename no-heading no-ignore"
        " no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent"
        " no-ignore-vcs no-line-number no-messages no-mmap no-require-git no-unicode null null-data one-file-system"
        " only-matching passthru pcre2 pcre2-version pretty quiet smart-case stats text trace trim type-list"
        " unrestricted vimgrep with-filename word-regexp no-column no-hidden no-json no-trim no-stats pre="
        " pre-glob= hostname-bin= search-zip follow no-follow no-pre no-search-zip",
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
            "HIuspiFagl0q1hVxXL",
            "dteEcSojCT",
            "max-depth= min-depth= exact-depth= type= extension= exclude= color= owner= size= changed-within="
            " changed-before= newer= older= change-newer-than= change-older-than= threads= base-directory="
            " search-path= ignore-file= format= batch-size= max-results= path-separator= and= strip-cwd-prefix?"
            " hyperlink? hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-require-git"
            " no-global-ignore-file unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path"
            " relative-path list-details follow full-path print0 prune quiet show-errors one-file-system exec"
            " exec-batch",
            skip=1,
            danger=("x", "X", "exec", "exec-batch", "L", "follow"),
            read_options=("C", "base-directory", "search-path", "ignore-file"),
            find_commands=_unwrap_fd,
            versioned=True,
        ),
    ),
    "ag": read_files(
        "acHiLlnoQSsuUtvwWzfgFRr0123456789",
        "ABCGmp",
        "ackmate all-text all-types after= before= case-sensitive color nocolor column count depth= file-search-regex="
        " filename nofilename files-with-matches files-without-matches fixed-strings group nogroup heading noheading"
        " hidden ignore= ignore-case ignore-dir= invert-match literal max-count= no-numbers numbers nonumbers"
        " one-device only-matching path-to-ignore= print-long-lines print0 silent smart-case stats unrestricted vimgrep"
        " width= word-regexp pager= search-zip search-binary follow skip-vcs-ignores context?",
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
_FLAGS = frozenset(
    split_names(
        "-H -P -a -and -o -or -not -true -false -print -print0 -ls -prune -quit -depth -d -daystart -empty -executable"
        " -readable -writable -nouser -nogroup -mount -xdev -noleaf -warn -nowarn -ignore_readdir_race"
        " -noignore_readdir_race -help -version --help --version -L -follow --"
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
    unknown = [f"it is not known what find {word.text} does" for word in _list_unknown(words)]
    return add_objections(part, objections, runs, reads=True, unknown=unknown)


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


def _list_unknown(words: Sequence[ShellWord]) -> list[ShellWord]:
    """Words that are neither paths nor tests and actions that are known."""
    named = {*_FLAGS, *_VALUE_TESTS, *_FILE_TESTS, *_RUNNING, *_WRITING, "-delete"}
    found, index = [], 1
    while index < len(words):
        text = words[index].text
        if text.startswith("-") and len(text) > 1 and text not in named:
            found += [] if re.fullmatch(r"-O\d|-newer[aBcmt][aBcmt]", text) else [words[index]]
        index += 2 if text in _VALUE_TESTS or text in _FILE_TESTS else 1
    return found


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
