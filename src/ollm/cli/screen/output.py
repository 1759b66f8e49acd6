"""What the screen writes through. tmux keeps a copy of all that is shown when a screen is cleared from its first cell;
so that no half-written lines are left in the scroll-back, ours is cleared from the second."""

from __future__ import annotations

import sys

from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_bell_environment_variable, get_term_environment_variable

ERASE_FROM_SECOND_CELL = "\x1b[C\x1b[J\x1b[D\x1b[K"


class TmuxSafeOutput(Vt100_Output):
    def erase_down(self) -> None:
        self.write_raw(ERASE_FROM_SECOND_CELL)


def open_output() -> Vt100_Output:
    """Standard output, as the toolkit would open it."""
    return TmuxSafeOutput.from_pty(
        sys.stdout, term=get_term_environment_variable(), enable_bell=get_bell_environment_variable()
    )
