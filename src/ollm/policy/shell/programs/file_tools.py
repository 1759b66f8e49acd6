"""Programs that write, move, pack, fetch and remove files."""

from __future__ import annotations

from typing import Any

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.inner_commands import unwrap_ssh
from ollm.policy.shell.programs.record import Granting, Program, Writing, share_record, write_files

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
