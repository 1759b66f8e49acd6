"""Programs that only read, as long as certain options are not used."""

from __future__ import annotations

from ollm.domain.struct import Data
from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.tables import split_names


class ReadOnlyProgram(Data, frozen=True):
    """How a reading program treats its words.

    `danger`: options that run something or write. `skip`: so many operands are no paths (a pattern), unless one of
    `pattern_options` gives it. `paths` false: operands are text. `read_options`: options whose value is a file read.
    `output`: the operand from which on files are written. `deep`: options that make it read hidden files of a whole
    tree, `selecting` those that do so for the names in their value, `following` those that follow its links.
    """

    grammar: OptionGrammar = OptionGrammar()
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


def _make_program(values: str = "", longs: str = "", **settings: object) -> ReadOnlyProgram:
    danger = settings.get("danger", ())
    assert isinstance(danger, tuple)
    known = tuple(name for name in danger if len(name) > 1)
    more = settings.pop("known", ())
    assert isinstance(more, tuple)
    grammar = OptionGrammar(values=values, long_values=tuple(longs.split()), known=(*known, *more))
    return ReadOnlyProgram(grammar=grammar, **settings)  # type: ignore[arg-type]  # checked by msgspec's constructor


_TEXT = _make_program(paths=False)
_FILES = _make_program()
_GREP = _make_program(
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
_SUM = _make_program(known=("check",))

READING_PROGRAMS: dict[str, ReadOnlyProgram] = {
    **dict.fromkeys(split_names("cat tac nl rev paste strings zcat readlink realpath cmp cksum"), _FILES),
    **dict.fromkeys(split_names("true false pwd whoami id groups nproc arch uptime tty logname"), _TEXT),
    **dict.fromkeys(split_names("echo basename dirname seq sleep expr which type test [ : uname"), _TEXT),
    **dict.fromkeys(split_names("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum"), _SUM),
    **dict.fromkeys(split_names("grep egrep fgrep zgrep"), _GREP),
    "printf": ReadOnlyProgram(grammar=OptionGrammar(values="v", stops=True), danger=("v",), paths=False),
    "ls": _make_program(
        "ITw", "block-size color format hide ignore indicator-style quoting-style sort tabsize time time-style width"
    ),
    "head": _make_program("nc", "lines bytes"),
    "tail": _make_program("ncs", "lines bytes sleep-interval pid max-unchanged-stats"),
    "wc": _make_program("", "files0-from total", danger=("files0-from",)),
    "sort": _make_program(
        "kotST",
        "key field-separator buffer-size sort batch-size parallel random-source files0-from",
        danger=("o", "T", "output", "temporary-directory", "compress-program", "files0-from"),
        read_options=("random-source",),
    ),
    "uniq": _make_program("fsw", "skip-fields skip-chars check-chars all-repeated group", output=1),
    "cut": _make_program("bcdf", "bytes characters delimiter fields output-delimiter"),
    "tr": _TEXT,
    "fold": _make_program("w", "width"),
    "fmt": _make_program("wgp", "width goal prefix"),
    "expand": _make_program("t", "tabs"),
    "unexpand": _make_program("t", "tabs"),
    "column": _make_program(
        "csolNRTHWEdJn", "separator output-separator table-columns output-width table-right table-hide"
    ),
    "join": _make_program("12jtoaeiv"),
    "comm": _make_program("", "output-delimiter"),
    "diff": _make_program(
        "UCxXIFWL",
        "unified context exclude exclude-from label ignore-matching-lines width color from-file to-file",
        read_options=("X", "exclude-from", "from-file", "to-file"),
        known=("recursive",),
    ),
    "stat": _make_program("cft", "format printf"),
    "file": _make_program(
        "fFmPe",
        "files-from separator magic-file",
        danger=("C", "compile"),
        read_options=("f", "m", "files-from", "magic-file"),
    ),
    "du": _make_program(
        "dBtX",
        "max-depth block-size threshold exclude exclude-from time",
        danger=("files0-from",),
        read_options=("X", "exclude-from"),
    ),
    "df": _make_program("Btx", "block-size type exclude-type output"),
    "tree": _make_program(
        "LPIoHT",
        "charset filelimit timefmt sort gitfile",
        danger=("o", "R", "output"),
        read_options=("gitfile",),
    ),
    "od": _make_program("AjNtwS", "address-radix skip-bytes read-bytes format width strings"),
    "hexdump": _make_program("enfs", read_options=("f",)),
    "xxd": _make_program("cgloRs", danger=("r", "revert"), output=1),
    "base64": _make_program("wio", "wrap", danger=("o",)),
    "date": _make_program(
        "dfrs",
        "date file reference set",
        danger=("s", "set"),
        paths=False,
        read_options=("f", "file", "r", "reference"),
    ),
    "hostname": _make_program(paths=False, danger=("F", "b", "file", "boot")),
    "ps": _make_program("CGgoOptuUskq", "format pid ppid sort user", paths=False, danger=("E",)),
    "free": _make_program("cs", paths=False),
    "jq": _make_program(
        "Lf",
        "from-file indent",
        skip=1,
        pattern_options=("f", "from-file"),
        read_options=("f", "from-file", "L"),
        danger=("L", "slurpfile", "rawfile", "argfile"),
    ),
    "rg": _make_program(
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
    "fd": _make_program(
        "dtegEcoSjx",
        "max-depth min-depth type extension exclude color owner size "
        "changed-within changed-before threads base-directory search-path",
        skip=1,
        danger=("x", "X", "exec", "exec-batch", "L", "follow"),
        read_options=("base-directory", "search-path"),
    ),
    "cd": _FILES,
    "command": _make_program(paths=False),
    "ag": _make_program("ABCGmp", skip=1, danger=("pager",), read_options=("p",)),
}

VERSIONED_PROGRAMS = frozenset(
    split_names(
        "python python3 pip pip3 node npm npx pnpm yarn bun deno go cargo rustc rustup gcc g++ clang make "
        "cmake git java javac ruby gem perl php docker rg fd jq curl wget uv ruff mypy pytest tsc eslint "
        "prettier bash zsh sed awk tar "
    )
)
VERSION_OPTIONS = frozenset({"--version", "-V", "-v"})
VERSION_WORDS = frozenset({("go", "version"), ("java", "-version"), ("javac", "-version")})
FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"})
FIND_VALUE_TESTS = frozenset(
    split_names(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size "
        "-mtime -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -maxdepth -mindepth -links -inum "
        "-fstype -used -printf -regextype -context -D "
    )
)
FIND_FILE_TESTS = frozenset({"-newer", "-anewer", "-cnewer", "-samefile", "-files0-from"})
SHELL_CHANGING_BUILTINS = {
    **dict.fromkeys(
        split_names("export declare typeset local readonly unset read mapfile readarray getopts"),
        "changes the shell's variables",
    ),
    **dict.fromkeys(split_names("alias unalias hash enable complete compopt bind"), "changes what a name means"),
    **dict.fromkeys(split_names("set shopt ulimit umask"), "changes how the shell works"),
    **dict.fromkeys(split_names("source . eval exec fc"), "runs code that cannot be checked"),
}
EVALUATING_BUILTINS = frozenset(
    {"test", "[", "printf", "read", "unset", "declare", "typeset", "export", "local", "readonly", "let"}
)
