"""The context as it stood at the end of a turn, kept so that a resume can send exactly that (design 3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.domain.context import ActiveContext, ModeName
from ollm.domain.struct import Data

if TYPE_CHECKING:
    from ollm.runtime.prompt import Prompt

RESUMED = "resumed"  # the context entry that tells where a session stood


class KeptContext(Data, frozen=True):
    """The context at the end of a turn; `last_number` is the newest message it knows of."""

    model: str
    window: int
    mode: ModeName
    last_number: int
    context: ActiveContext

    @staticmethod
    def of(prompt: Prompt, last_number: int) -> KeptContext:
        whom = prompt.model
        return KeptContext(
            model=whom.model,
            window=whom.window,
            mode=prompt.mode,
            last_number=last_number,
            context=prompt.active_context(),
        )


class _Number(Data, frozen=True):
    last_number: int


def kept_number(kept: bytes | None) -> int:
    """The newest message a kept context knows of; 0 without one."""
    try:
        return msgspec.json.decode(kept or b"", type=_Number).last_number
    except msgspec.MsgspecError:
        return 0
