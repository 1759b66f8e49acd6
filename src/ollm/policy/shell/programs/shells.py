"""Shells, their builtins that change them, interpreters and editors: what runs code."""

from __future__ import annotations

from ollm.policy.shell.options import OptionGrammar
from ollm.policy.shell.programs.inner_commands import (
    unwrap_alias,
    unwrap_callback,
    unwrap_eval,
    unwrap_shell,
    unwrap_trap,
)
from ollm.policy.shell.programs.record import Granting, Launching, Program, Writing, share_record

_VARIABLES = "changes the shell's variables"
_NAMES = "changes what a name means"
_CODE = "runs code that cannot be checked"
_SHELL = Program(kind="shell", find_commands=unwrap_shell, fed="script")
_INTERPRETER = Program(kind="interpreter", code=True)
_MARKED = Launching(words=False, marked=True)
_EDITOR = Program(options=OptionGrammar(values="cSu"), writes=Writing(shape="all"), launches=_MARKED, code=True)
_CALLBACK = Program(options=OptionGrammar(values="dnOsuCc"), find_commands=unwrap_callback, changes=_VARIABLES)

SHELLS: dict[str, Program] = {
    **share_record("sh dash ksh mksh ash fish rbash csh tcsh yash posh oksh", _SHELL),
    **share_record("bash zsh", Program(kind="shell", find_commands=unwrap_shell, fed="script", versioned=True)),
    **share_record(
        "export declare typeset local readonly", Program(changes=_VARIABLES, evaluates=True, sets_variables=True)
    ),
    **share_record("read unset", Program(changes=_VARIABLES, evaluates=True)),
    "getopts": Program(changes=_VARIABLES),
    "let": Program(evaluates=True),
    **share_record("mapfile readarray", _CALLBACK),
    "alias": Program(changes=_NAMES, find_commands=unwrap_alias),
    **share_record("unalias hash enable compopt bind", Program(changes=_NAMES)),
    "complete": Program(changes=_NAMES, launches=Launching(words=False)),
    **share_record("set shopt ulimit umask", Program(changes="changes how the shell works")),
    **share_record("source .", Program(changes=_CODE, fed="script")),
    "eval": Program(changes=_CODE, find_commands=unwrap_eval),
    "fc": Program(changes=_CODE),
    "trap": Program(find_commands=unwrap_trap),
    **share_record("python2 pypy3 deno ts-node tsx php lua luajit tclsh Rscript osascript", _INTERPRETER),
    "node": Program(kind="interpreter", code=True, versioned=True),
    **share_record(
        "python python3", Program(kind="interpreter", code=True, versioned=True, grants=Granting(third=("-m",)))
    ),
    "java": Program(versioned=True),
    "perl": Program(
        options=OptionGrammar(values="eEIMm"),
        writes=Writing(shape="all", needs=("i",)),
        acting="-e -E -i -M -m",
        kind="interpreter",
        code=True,
        versioned=True,
    ),
    "ruby": Program(
        options=OptionGrammar(values="eIr"),
        writes=Writing(shape="all", needs=("i",)),
        acting="-e -i -r",
        kind="interpreter",
        code=True,
    ),
    **share_record("vim vi nvim", _EDITOR),
    "emacs": Program(writes=Writing(shape="all"), launches=_MARKED, code=True),
    "ed": Program(writes=Writing(shape="all"), launches=_MARKED, fed="commands"),
    "ex": Program(options=OptionGrammar(values="c"), writes=Writing(shape="all"), launches=_MARKED, fed="commands"),
}
