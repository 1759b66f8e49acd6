"""Programs and shell builtins that tell something about the system, the shell or a text they are given."""

from __future__ import annotations

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.record import Program, Reading, read_files, read_text
from ollm.policy.shell.tables import split_names

_WORDS = Program(options=OptionGrammar(stops=True), reads=Reading(paths=False))

SYSTEM_TOOLS: dict[str, Program] = {
    **dict.fromkeys(("true", "false", ":", "echo", "test", "[", "expr", "whoami", "logname", "arch"), _WORDS),
    "printf": Program(
        options=OptionGrammar(flags="", values="v", stops=True), reads=Reading(danger=("v",), paths=False)
    ),
    "pwd": read_text("LP", "", "logical physical"),
    "id": read_text("aGgnruzZ", "", "context group groups name real user zero"),
    "groups": read_text(),
    "nproc": read_text("", "", "all ignore="),
    "uptime": read_text("psVh", "", "pretty since"),
    "tty": read_text("s", "", "silent quiet"),
    "basename": read_text("az", "s", "multiple suffix= zero"),
    "dirname": read_text("z", "", "zero"),
    "seq": read_text("w0123456789", "fs", "format= separator= equal-width"),
    "sleep": read_text(),
    "which": read_text("as", "", "all"),
    "type": read_text("afptP"),
    "uname": read_text(
        "asnrvmpio",
        "",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system",
    ),
    "tr": read_text("cCdst", "", "complement delete squeeze-repeats truncate-set1"),
    "date": read_text(
        "uRjn",
        "dfrvz",
        "date= debug file= iso-8601? resolution rfc-email rfc-3339= reference= set= utc universal rfc-822 rfc-2822",
        "I",
        danger=("s", "set"),
        read_options=("f", "file", "r", "reference"),
    ),
    "hostname": read_text("aAdfiIsyV", "", "alias all-fqdns all-ip-addresses domain fqdn long ip-address short nis yp"),
    "ps": read_text(
        "AadeNTcHflyMPjFwZVLmrSvxX",
        "CGgoOptuUskqn",
        "deselect Group= User= group= pid= ppid= quick-pid= sid= tty= user= context format= cols= columns= cumulative"
        " delimiter? forest headers lines= no-headers rows= sort= width= info",
        danger=("E",),
    ),
    "free": read_text(
        "bkmghltvwLV",
        "cs",
        "bytes kilo mega giga tera peta kibi mebi gibi tebi pebi human si lohi total committed"
        " wide seconds= count= line",
    ),
    "cd": read_files("LPe@"),
    "command": Program(options=OptionGrammar(flags="vVp", stops=True), reads=Reading(paths=False)),
}

SHELL_CHANGING_BUILTINS = {
    **dict.fromkeys(
        ("export", "declare", "typeset", "local", "readonly", "unset", "read", "mapfile", "readarray", "getopts"),
        "changes the shell's variables",
    ),
    **dict.fromkeys(("alias", "unalias", "hash", "enable", "complete", "compopt", "bind"), "changes what a name means"),
    **dict.fromkeys(("set", "shopt", "ulimit", "umask"), "changes how the shell works"),
    **dict.fromkeys(("source", ".", "eval", "exec", "fc"), "runs code that cannot be checked"),
}
EVALUATING_BUILTINS = frozenset(
    {"test", "[", "printf", "read", "unset", "declare", "typeset", "export", "local", "readonly", "let"}
)
VERSIONED_PROGRAMS = frozenset(
    split_names("bash zsh sed awk tar git gcc g++ clang make cmake curl wget rg fd jq perl python python3 node java")
)
VERSION_OPTIONS = frozenset({"--version", "-V", "-v", "-version"})
SYSTEM_DIRECTORIES = ("/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/lib/", "/opt/homebrew/")
