"""Programs that search files and trees."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.policy.shell.evaluated import find_jq_dangers
from ollm.policy.shell.programs.record import InnerCommand, Program, read_files, share_record
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
