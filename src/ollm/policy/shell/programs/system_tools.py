"""Programs that read, write and build files, and those and shell builtins that print information."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.git import GIT
from ollm.policy.shell.programs.inner_commands import unwrap_command_builtin, unwrap_ssh
from ollm.policy.shell.programs.record import (
    Granting,
    Launching,
    Program,
    Reading,
    Wrapping,
    Writing,
    read_files,
    read_text,
    share_record,
    split_names,
    write_files,
)
from ollm.policy.shell.words import ShellWord

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
        return []  # without a second word there is no variable to set
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


_STOPPING = OptionGrammar(stops=True)

SYSTEM_TOOLS: dict[str, Program] = {
    **share_record("true false echo whoami", Program(options=_STOPPING, reads=Reading(paths=False, exact=True))),
    **share_record(": expr logname arch", Program(options=_STOPPING, reads=Reading(paths=False))),
    **share_record(
        "exit return break continue",
        Program(options=_STOPPING, reads=Reading(paths=False, evaluate=find_status_dangers)),
    ),
    **share_record(
        "test [",
        Program(options=_STOPPING, reads=Reading(paths=False, evaluate=find_test_dangers), evaluates=True),
    ),
    "printf": Program(
        options=OptionGrammar(flags="", values="v", stops=True),
        reads=Reading(danger=("v",), paths=False, evaluate=find_printf_dangers),
        evaluates=True,
    ),
    "pwd": read_text("", "logical physical", flags="LP", exact=True),
    "id": read_text(),
    "groups": read_text(),
    "nproc": read_text("", "ignore="),
    "uptime": read_text(),
    "tty": read_text(),
    "basename": read_text("s", "multiple suffix= zero", flags="az", exact=True),
    "dirname": read_text("", "zero", flags="z", exact=True),
    "seq": read_text("fs", "format= separator="),
    "sleep": read_text(),
    "which": read_text(),
    "type": read_text(),
    "uname": read_text(
        "",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system",
        flags="asnrvmpio",
        exact=True,
    ),
    "tr": read_text(),
    "date": read_text(
        "dfrvz",
        "date= debug file= iso-8601? resolution rfc-email rfc-3339= reference= set= utc universal rfc-822 rfc-2822",
        "I",
        flags="uRjn",
        danger=("s", "set"),
        read_options=("f", "file", "r", "reference"),
        setting=(r"(?!\+).*", "it sets the clock"),
        exact=True,
    ),
    "hostname": read_text(setting=(".*", "it sets the computer's name")),
    "ps": read_text(
        "CGgoOptuUskqn",
        "Group= User= group= pid= ppid= quick-pid= sid= tty= user= format= cols= columns= delimiter? lines= rows="
        " sort= width=",
        danger=("E",),
        setting=(".*e.*", "it shows other processes' arguments"),
    ),
    "free": read_text("cs", "seconds= count="),
    "cd": read_files(),
    "command": Program(
        options=OptionGrammar(flags="vVp", stops=True),
        reads=Reading(paths=False, only_with=("-v", "-V")),
        wraps=Wrapping(),
        find_commands=unwrap_command_builtin,
    ),
}


_DIGITS = "0123456789"
_SUM = read_files("l", "check length=", names=("c", "check"))

TEXT_TOOLS: dict[str, Program] = {
    "cat": read_files(
        "",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
        flags="AbeEnstTuv",
        exact=True,
    ),
    "tac": read_files("s", "separator="),
    "nl": read_files(
        "bdfhilnsvw",
        "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines="
        " number-format= number-separator= starting-line-number= number-width=",
    ),
    "rev": read_files(),
    "paste": read_files("d", "delimiters="),
    "strings": read_files("netTsU", "bytes= radix= encoding= target= output-separator= unicode=", responses=True),
    "zcat": read_files("S", "suffix="),
    "readlink": read_files(),
    "realpath": read_files("", "relative-to= relative-base=", read_options=("relative-to", "relative-base")),
    "cmp": read_files("in", "ignore-initial= bytes="),
    "cksum": read_files("al", "check algorithm= length=", names=("c", "check")),
    **share_record("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", _SUM),
    "sum": read_files(),
    "ls": read_files(
        "ITw",
        "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format="
        " full-time group-directories-first no-group human-readable si dereference-command-line"
        " dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore= kibibytes"
        " dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style="
        " reverse recursive size sort= time= time-style= tabsize= width= context zero",
        flags="aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        following=("L", "dereference"),
        exact=True,
    ),
    "head": read_files("nc", "bytes= lines= quiet silent verbose zero-terminated", flags="qvz" + _DIGITS, exact=True),
    "tail": read_files(
        "ncs",
        "bytes= follow? lines= max-unchanged-stats= pid= quiet silent retry sleep-interval= verbose zero-terminated",
        flags="fFqvzbr" + _DIGITS,
        exact=True,
    ),
    "wc": read_files(
        "",
        "bytes chars lines files0-from= max-line-length words total=",
        flags="cmlLw",
        danger=("files0-from",),
        exact=True,
    ),
    "sort": read_files(
        "kotST",
        "random-source= sort= batch-size= check? compress-program= files0-from= key= output= buffer-size="
        " field-separator= temporary-directory= parallel=",
        danger=("o", "T", "output", "temporary-directory", "compress-program", "files0-from"),
        read_options=("random-source",),
        writes=Writing(shape="option", targets=("o", "output")),
        commands="--compress-program",
    ),
    "uniq": read_files("fsw", "all-repeated? skip-fields= group? skip-chars= check-chars=", output=1),
    "cut": read_files("bcdf", "bytes= characters= delimiter= fields= output-delimiter="),
    "fold": read_files("w", "width="),
    "fmt": read_files("wgp", "prefix= width= goal="),
    "expand": read_files("t", "tabs="),
    "unexpand": read_files("t", "tabs="),
    "column": read_files(
        "nONlHRTWripcosEC",
        "table table-name= table-order= table-columns= table-columns-limit= table-column= table-noextreme="
        " table-hide= table-right= table-truncate= table-wrap= tree= tree-id= tree-parent= output-width="
        " output-separator= separator=",
    ),
    "join": read_files("aejotv12"),
    "comm": read_files("", "output-delimiter="),
    "diff": read_files(
        "CUWFxXSID",
        "paginate context? unified? width= show-function-line= label= tabsize= exclude= exclude-from="
        " starting-file= from-file= to-file= ignore-matching-lines= ifdef= old-group-format= new-group-format="
        " unchanged-group-format= changed-group-format= line-format= old-line-format= new-line-format="
        " unchanged-line-format= horizon-lines= color? palette=",
        danger=("l", "paginate"),
        read_options=("X", "exclude-from", "from-file", "to-file"),
        compares=True,
    ),
    "stat": read_files("c", "cached= format= printf="),
    "file": read_files(
        "fFmPe",
        "no-sandbox compile uncompress uncompress-noreport preserve-date exclude= exclude-quiet= files-from="
        " separator= magic-file= parameter=",
        danger=(*"CmzZpS", *split_names("compile magic-file uncompress uncompress-noreport preserve-date no-sandbox")),
        names=("f", "files-from"),
        read_options=("f", "m", "files-from", "magic-file"),
    ),
    "du": read_files(
        "BdtX",
        "dereference block-size= max-depth= files0-from= threshold= time? time-style= exclude-from= exclude=",
        danger=("files0-from",),
        read_options=("X", "exclude-from"),
        following=("L", "dereference"),
    ),
    "df": read_files("Btx", "sync block-size= output? type= exclude-type=", danger=("sync",)),
    "tree": read_files(
        "LPIHTo",
        "info fromfile fromtabfile filelimit= timefmt= sort= charset= gitfile= infofile= hintro= houtro= compress=",
        danger=("o", "R", "output", "fromfile", "fromtabfile"),
        writes=Writing(shape="option", targets=("o", "output")),
        following=("l",),
        read_options=("gitfile", "infofile", "hintro", "houtro"),
    ),
    "od": read_files("AjNtS", "address-radix= endian= skip-bytes= read-bytes= strings? format= width?", "w"),
    "hexdump": read_files("efns", "color? format= format-file= length= skip=", "L", read_options=("f", "format-file")),
    "xxd": Program(
        options=OptionGrammar(values="cglos", numeric=True, stops=True),
        reads=Reading(danger=("r", "revert"), output=1),
    ),
    "base64": read_files(
        "wo", "wrap= output=", danger=("o", "output"), writes=Writing(shape="option", targets=("o", "output"))
    ),
}


_NEVER = Granting(never=True)
_PLACES: dict[str, Any] = {"targets": ("t", "target-directory")}
_DEEP: dict[str, Any] = {"skip": 1, "deep": ("R", "recursive")}

FILE_TOOLS: dict[str, Program] = {
    "cp": write_files("last", "tS", "target-directory suffix", **_PLACES, flag_letters={"": {"recursive": "rRa"}}),
    "mv": write_files("last", "tS", "target-directory suffix", **_PLACES, moves=True, grants=_NEVER),
    "ln": write_files("last", "tS", "target-directory suffix", **_PLACES),
    "install": write_files("last", "tSmog", "target-directory suffix mode owner group", **_PLACES),
    "rsync": write_files(
        "last",
        "efTBM",
        "rsh exclude include exclude-from files-from backup-dir log-file temp-dir",
        commands="-e --rsh --rsync-path",
        flag_letters={"": {"recursive": "ra", "force": ""}},
    ),
    "scp": write_files("last", "cFiJloPSX", commands="-S", acting="-o -F -D", find_commands=unwrap_ssh),
    "sftp": Program(commands="-S", find_commands=unwrap_ssh),
    **share_record("tee sponge rmdir unlink nano", write_files("all")),
    "touch": write_files("all", "drt", "date reference time"),
    "rm": write_files("all", deep=("r", "R", "recursive"), grants=_NEVER),
    "shred": write_files("all", "nsu", "iterations size"),
    "mkdir": write_files("all", "mZ", "mode"),
    "mkfifo": write_files("all", "m", "mode"),
    "mknod": write_files("first", "m", "mode"),
    "truncate": write_files("all", "sr", "size reference"),
    "chmod": write_files("all", "", "reference", **_DEEP, grants=_NEVER),
    "chown": write_files("all", "", "reference from", **_DEEP, grants=_NEVER),
    "chgrp": write_files("all", "", "reference", **_DEEP),
    "chattr": write_files("all", **_DEEP),
    "setfacl": write_files("all", "mxM", deep=("R",)),
    "dd": write_files("settings", grants=_NEVER),
    "patch": write_files(
        "all",
        "dioprBDFYz",
        "directory input output reject-file strip",
        targets=("o", "output", "r", "reject-file", "d", "directory"),
    ),
    "curl": write_files(
        "option",
        "oHdXuAebFTKcDwxE",
        "output dump-header cookie-jar output-dir trace trace-ascii stderr etag-save",
        targets=("o", "output", "D", "dump-header", "c", "cookie-jar", "output-dir", "trace", "trace-ascii", "stderr"),
        grants=_NEVER,
        versioned=True,
    ),
    "wget": write_files(
        "option",
        "OPoaeUtTQlARDIX",
        "output-document directory-prefix output-file append-output",
        targets=("O", "output-document", "P", "directory-prefix", "o", "output-file", "a", "append-output"),
        grants=_NEVER,
        versioned=True,
    ),
    "tar": write_files(
        "option",
        "fCITXbgHVKN",
        "file directory exclude exclude-from",
        targets=("f", "file", "C", "directory"),
        commands="--to-command --use-compress-program -I --checkpoint-action --rsh-command --rmt-command --info-script"
        " --new-volume-script -F",
        versioned=True,
    ),
    "unzip": write_files("option", "dxP", targets=("d",)),
    "zip": write_files("first", "xib", commands="-TT --unzip-command", acting="-T"),
    "openssl": Program(
        options=OptionGrammar(long_values=("out",), single_dash=True),
        writes=Writing(shape="option", targets=("out",)),
    ),
    "split": write_files("option", "abClnt"),
}

_PACKAGES = Granting(
    depth=2,
    subcommands=("test", "start", "run", "build", "lint", "ls", "outdated"),
    third=("run",),
)
_NPM = Granting(depth=2, subcommands=_PACKAGES.subcommands, third=("run", "exec"))
_EXEC = Launching(after=("exec", "dlx", "x"), own=1)
_WHOLE = Granting(depth=1)
_TWO_WORDS = Granting(depth=2)

BUILD_TOOLS: dict[str, Program] = {
    "git": GIT,
    "npm": Program(
        launches=_EXEC, grants=_NPM, steering="C", global_values="--prefix -w --workspace --loglevel --registry"
    ),
    "pnpm": Program(launches=_EXEC, grants=_PACKAGES, steering="C"),
    "yarn": Program(launches=_EXEC, grants=_PACKAGES),
    "bun": Program(launches=_EXEC, grants=_PACKAGES, steering="r", kind="interpreter", code=True),
    "cargo": Program(
        launches=Launching(after=("watch",), words=False),
        grants=Granting(depth=2, subcommands=("build", "test", "check", "clippy", "fmt", "doc", "bench", "tree")),
        steering="ZC",
        global_values="--color --config -Z -C --manifest-path",
    ),
    "go": Program(grants=Granting(depth=2, subcommands=("test", "build", "vet", "fmt", "list")), steering="C"),
    "make": Program(
        commands="--eval",
        acting="--file --makefile --directory --include-dir -f -C -I",
        acting_words="SHELL=.*",
        grants=_TWO_WORDS,
        steering="fCIEW",
        fed="commands",
        versioned=True,
    ),
    "gh": Program(grants=Granting(depth=2, third=("pr", "issue"))),
    "gradle": Program(grants=_TWO_WORDS, steering="IpDbcP"),
    "mvn": Program(grants=_TWO_WORDS, steering="fsDl"),
    "just": Program(grants=_TWO_WORDS, steering="fd"),
    "tox": Program(grants=_TWO_WORDS, steering="cx"),
    "dotnet": Program(grants=_TWO_WORDS),
    "pytest": Program(grants=_WHOLE, steering="pco"),
    "mypy": Program(grants=_WHOLE, steering="pm"),
    "eslint": Program(grants=_WHOLE, steering="cof"),
    "tsc": Program(grants=_WHOLE, steering="p"),
    "flake8": Program(grants=_WHOLE, steering="r"),
    **share_record("jest vitest", Program(grants=_WHOLE, steering="c")),
    **share_record("ruff prettier black", Program(grants=_WHOLE)),
    **share_record("pip terraform", Program(grants=Granting())),
    "gcc": write_files(
        "option", "oIDLl", targets=("o",), acting_words=r"-wrapper|-B.*|-specs.*|-fplugin.*", versioned=True
    ),
    **share_record("g++ clang cmake", Program(versioned=True)),
}
