"""Programs and shell builtins that tell something about the system, the shell or a text they are given."""

from __future__ import annotations

from ollm.policy.shell.evaluated import find_printf_dangers, find_status_dangers, find_test_dangers
from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.inner_commands import unwrap_command_builtin
from ollm.policy.shell.programs.record import Program, Reading, Wrapping, read_files, read_text, share_record

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
    "pwd": read_text("LP", "", "logical physical", exact=True),
    "id": read_text("aGgnruzZ", "", "context group groups name real user zero"),
    "groups": read_text(),
    "nproc": read_text("", "", "all ignore=", counts=()),
    "uptime": read_text("psVh", "", "pretty since"),
    "tty": read_text("s", "", "silent quiet"),
    "basename": read_text("az", "s", "multiple suffix= zero", exact=True),
    "dirname": read_text("z", "", "zero", exact=True),
    "seq": read_text("w0123456789", "fs", "format= separator= equal-width"),
    "sleep": read_text(),
    "which": read_text("as", "", "all"),
    "type": read_text("afptP"),
    "uname": read_text(
        "asnrvmpio",
        "",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system",
        exact=True,
    ),
    "tr": read_text("cCdst", "", "complement delete squeeze-repeats truncate-set1"),
    "date": read_text(
        "uRjn",
        "dfrvz",
        "date= debug file= iso-8601? resolution rfc-email rfc-3339= reference= set= utc universal rfc-822 rfc-2822",
        "I",
        danger=("s", "set"),
        read_options=("f", "file", "r", "reference"),
        setting=(r"(?!\+).*", "it sets the clock"),
        exact=True,
        counts=("+%s",),
    ),
    "hostname": read_text(
        "aAdfiIsyV",
        "",
        "alias all-fqdns all-ip-addresses domain fqdn long ip-address short nis yp",
        setting=(".*", "it sets the computer's name"),
    ),
    "ps": read_text(
        "AadeNTcHflyMPjFwZVLmrSvxX",
        "CGgoOptuUskqn",
        "deselect Group= User= group= pid= ppid= quick-pid= sid= tty= user= context format= cols= columns= cumulative"
        " delimiter? forest headers lines= no-headers rows= sort= width= info",
        danger=("E",),
        setting=(".*e.*", "it shows other processes' arguments"),
    ),
    "free": read_text(
        "bkmghltvwLV",
        "cs",
        "bytes kilo mega giga tera peta kibi mebi gibi tebi pebi human si lohi total committed"
        " wide seconds= count= line",
    ),
    "cd": read_files("LPe@"),
    "command": Program(
        options=OptionGrammar(flags="vVp", stops=True),
        reads=Reading(paths=False, only_with=("-v", "-V")),
        wraps=Wrapping(),
        find_commands=unwrap_command_builtin,
    ),
}
