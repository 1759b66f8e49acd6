"""What is known of shell programs: one record each."""

from __future__ import annotations

from ollm.policy.shell.programs.record import Program
from ollm.policy.shell.programs.search_tools import SEARCH_TOOLS
from ollm.policy.shell.programs.system_tools import SYSTEM_TOOLS
from ollm.policy.shell.programs.text_tools import TEXT_TOOLS

PROGRAMS: dict[str, Program] = {**TEXT_TOOLS, **SEARCH_TOOLS, **SYSTEM_TOOLS}
