"""Programs that only read, as long as certain options are not used."""

from __future__ import annotations

from ollm.domain.struct import Data
from ollm.policy.shell.options import Grammar
from ollm.policy.shell.tables import names


class Program(Data, frozen=True):
    """How a reading program treats its words.

    `danger`: options that run something or write. `skip`: so many operands are no paths (a pattern), unless one of
    `pattern_options` gives it. `paths` false: operands are text. `read_options`: options whose value is a file read.
    `output`: the operand from which on files are written. `deep`: options that make it read hidden files of a whole
    tree, `selecting` those that do so for the names in their value, `following` those that follow its links.
    """

    grammar: Grammar = Grammar()
    danger: tuple[str, ...] = ()
    skip: int = 0
    pattern_options: tuple[str, ...] = ()
    paths: bool = True
    read_options: tuple[str, ...] = ()
    output: int | None = None
    deep: tuple[str, ...] = ()
    selecting: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    reads: bool = True  # part of what runs without a question by default


def _program(values: str = "", longs: str = "", **settings: object) -> Program:
    danger = settings.get("danger", ())
    assert isinstance(danger, tuple)
    known = tuple(name for name in danger if len(name) > 1)
    more = settings.pop("known", ())
    assert isinstance(more, tuple)
    grammar = Grammar(values=values, long_values=tuple(longs.split()), known=(*known, *more))
    return Program(grammar=grammar, **settings)  # type: ignore[arg-type]  # checked by msgspec's constructor


_TEXT = _program(paths=False)
_FILES = _program()
_GREP = _program(
    "efmABCdD",
    "regexp file max-count after-context before-context context include exclude exclude-from exclude-dir label"
    " binary-files directories devices group-separator",
    skip=1,
    pattern_options=("e", "f", "regexp", "file"),
    read_options=("f", "file", "exclude-from"),
    known=("recursive", "dereference-recursive", "files-with-matches", "files-without-match", "fixed-strings"),
    selecting=("include",),
    following=("R", "dereference-recursive"),
)
_SUM = _program(known=("check",))

READING: dict[str, Program] = {
    **dict.fromkeys(names("cat tac nl rev paste strings zcat readlink realpath cmp cksum"), _FILES),
    **dict.fromkeys(names("true false pwd whoami id groups nproc arch uptime tty logname"), _TEXT),
    **dict.fromkeys(names("echo basename dirname seq sleep expr which type test [ : uname"), _TEXT),
    **dict.fromkeys(names("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum"), _SUM),
    **dict.fromkeys(names("grep egrep fgrep zgrep"), _GREP),
    "printf": Program(grammar=Grammar(values="v", stops=True), danger=("v",), paths=False),
    "ls": _program(
        "ITw", "block-size color format hide ignore indicator-style quoting-style sort tabsize time time-style width"
    ),
    "head": _program("nc", "lines bytes"),
    "tail": _program("ncs", "lines bytes sleep-interval pid max-unchanged-stats"),
    "wc": _program("", "files0-from total", danger=("files0-from",)),
    "sort": _program(
        "kotST",
        "key field-separator buffer-size sort batch-size parallel random-source files0-from",
        danger=("o", "T", "output", "temporary-directory", "compress-program", "files0-from"),
        read_options=("random-source",),
    ),
    "uniq": _program("fsw", "skip-fields skip-chars check-chars all-repeated group", output=1),
    "cut": _program("bcdf", "bytes characters delimiter fields output-delimiter"),
    "tr": _TEXT,
    "fold": _program("w", "width"),
    "fmt": _program("wgp", "width goal prefix"),
    "expand": _program("t", "tabs"),
    "unexpand": _program("t", "tabs"),
    "column": _program("csolNRTHWEdJn", "separator output-separator table-columns output-width table-right table-hide"),
    "join": _program("12jtoaeiv"),
    "comm": _program("", "output-delimiter"),
    "diff": _program(
        "UCxXIFWL",
        "unified context exclude exclude-from label ignore-matching-lines width color from-file to-file",
        read_options=("X", "exclude-from", "from-file", "to-file"),
        known=("recursive",),
    ),
    "stat": _program("cft", "format printf"),
    "file": _program(
        "fFmPe",
        "files-from separator magic-file",
        danger=("C", "compile"),
        read_options=("f", "m", "files-from", "magic-file"),
    ),
    "du": _program(
        "dBtX",
        "max-depth block-size threshold exclude exclude-from time",
        danger=("files0-from",),
        read_options=("X", "exclude-from"),
    ),
    "df": _program("Btx", "block-size type exclude-type output"),
    "tree": _program(
        "LPIoHT",
        "charset filelimit timefmt sort gitfile",
        danger=("o", "R", "output"),
        read_options=("gitfile",),
    ),
    "od": _program("AjNtwS", "address-radix skip-bytes read-bytes format width strings"),
    "hexdump": _program("enfs", read_options=("f",)),
    "xxd": _program("cgloRs", danger=("r", "revert"), output=1),
    "base64": _program("wio", "wrap", danger=("o",)),
    "date": _program(
        "dfrs",
        "date file reference set",
        danger=("s", "set"),
        paths=False,
        read_options=("f", "file", "r", "reference"),
    ),
    "hostname": _program(paths=False, danger=("F", "b", "file", "boot")),
    "ps": _program("CGgoOptuUskq", "format pid ppid sort user", paths=False, danger=("E",)),
    "free": _program("cs", paths=False),
    "jq": _program(
        "Lf",
        "from-file indent",
        skip=1,
        pattern_options=("f", "from-file"),
        read_options=("f", "from-file", "L"),
        danger=("L", "slurpfile", "rawfile", "argfile"),
    ),
    "rg": _program(
        "efgtTABCmMjrEdI",
        "regexp file glob iglob type type-not after-context "
        "before-context context max-count max-columns threads replace"
        " encoding max-depth ignore-file sort sortr color colors engine max-filesize type-add type-clear path-separator"
        " context-separator field-match-separator field-context-separator dfa-size-limit regex-size-limit",
        skip=1,
        pattern_options=("e", "f", "regexp", "file", "files", "type-list"),
        read_options=("f", "file", "ignore-file"),
        danger=("pre", "hostname-bin", "z", "search-zip", "L", "follow"),
        known=(
            "pretty",
            "pre-glob",
            "files",
            "type-list",
            "hidden",
            "unrestricted",
            "files-with-matches",
            "fixed-strings",
            "smart-case",
            "stats",
        ),
        deep=("hidden", "u", ".", "unrestricted"),
        selecting=("g", "glob", "iglob"),
    ),
    "fd": _program(
        "dtegEcoSjx",
        "max-depth min-depth type extension exclude color owner size "
        "changed-within changed-before threads base-directory search-path",
        skip=1,
        danger=("x", "X", "exec", "exec-batch", "L", "follow"),
        read_options=("base-directory", "search-path"),
    ),
    "cd": _FILES,
    "command": _program(paths=False),
    "ag": _program("ABCGmp", skip=1, danger=("pager",), read_options=("p",)),
}

VERSIONS = frozenset(
    names(
        "python python3 pip pip3 node npm npx pnpm yarn bun deno go cargo rustc rustup gcc g++ clang make "
        "cmake git java javac ruby gem perl php docker rg fd jq curl wget uv ruff mypy pytest tsc eslint "
        "prettier bash zsh sed awk tar "
    )
)
VERSION_OPTIONS = frozenset({"--version", "-V", "-v"})
VERSION_WORDS = frozenset({("go", "version"), ("java", "-version"), ("javac", "-version")})
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"})
FIND_VALUES = frozenset(
    names(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size "
        "-mtime -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -maxdepth -mindepth -links -inum "
        "-fstype -used -printf -regextype -context -D "
    )
)
FIND_FILES = frozenset({"-newer", "-anewer", "-cnewer", "-samefile", "-files0-from"})
CHANGES_SHELL = {
    **dict.fromkeys(
        names("export declare typeset local readonly unset read mapfile readarray getopts"),
        "changes the shell's variables",
    ),
    **dict.fromkeys(names("alias unalias hash enable complete compopt bind"), "changes what a name means"),
    **dict.fromkeys(names("set shopt ulimit umask"), "changes how the shell works"),
    **dict.fromkeys(names("source . eval exec fc"), "runs what cannot be seen here"),
}
EVALUATES = frozenset(
    {"test", "[", "printf", "read", "unset", "declare", "typeset", "export", "local", "readonly", "let"}
)
