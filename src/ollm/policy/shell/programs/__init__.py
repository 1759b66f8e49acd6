"""Shell program database: one record per program."""

from __future__ import annotations

from ollm.policy.shell.programs.inner_commands import LAUNCHERS, SHELLS, WRAPPERS
from ollm.policy.shell.programs.record import Program
from ollm.policy.shell.programs.search_tools import FIND_TOOLS, SCRIPT_TOOLS, SEARCH_TOOLS
from ollm.policy.shell.programs.system_tools import BUILD_TOOLS, FILE_TOOLS, SYSTEM_TOOLS, TEXT_TOOLS

PROGRAMS: dict[str, Program] = {
    **TEXT_TOOLS,
    **SEARCH_TOOLS,
    **FIND_TOOLS,
    **SYSTEM_TOOLS,
    **SCRIPT_TOOLS,
    **FILE_TOOLS,
    **BUILD_TOOLS,
    **WRAPPERS,
    **LAUNCHERS,
    **SHELLS,
}
UNKNOWN_PROGRAM = Program()


def get_program(name: str) -> Program:
    """Return the record of a program, or an empty record if the program is unknown."""
    return PROGRAMS.get(name, UNKNOWN_PROGRAM)
