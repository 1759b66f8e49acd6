"""What turns and commands change in a conversation: its model, what runs without a question, and the steps taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.context import ActiveContext, Approval, ModeName

if TYPE_CHECKING:
    from ollm.runtime.model.model import Model


class ConversationState(msgspec.Struct, kw_only=True):
    """`approval` is what was chosen, apart from what a mode imposes; `last_loop` says why the last turn was stopped."""

    model: Model
    approval: Approval = "ask"
    has_rules: bool  # without configured rules, policy has nothing to say of tools from outside
    auto_switch: Literal["off", "propose", "on"] = "off"
    proposed_modes: set[ModeName] = msgspec.field(default_factory=set)
    last_loop: str = ""
    chosen_model: str = ""  # the name given with /model, which the next session keeps
    mode_history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    context_history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    rewound: list[ActiveContext] = msgspec.field(default_factory=list)  # contexts before the rewinds of this process

    async def sees(self) -> bool:
        """Whether the model of the moment can see pictures; its server may have to be asked."""
        return await self.model.supports_images()

    def is_unguided(self) -> bool:
        """Whether it makes its calls without a guide, which tells a model that writes blocks what became of files."""
        return self.model.facts.call_form != "blocks"
