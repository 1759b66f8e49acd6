"""What the prompt of one conversation is made of, and who hears when it is compressed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.toolbox import CallPieces

if TYPE_CHECKING:
    from ollm.domain.context import CompressionRecord
    from ollm.runtime.model.model import Model
    from ollm.runtime.prompt.prompt import Prompt


class PromptPieces(CallPieces):
    """Built once the model is known: its window decides what fits."""

    def prompt(self, model: Model) -> Prompt:
        from ollm.runtime.prompt.compaction import Room
        from ollm.runtime.prompt.prompt import Prompt, PromptModel
        from ollm.services.token_counting import TokenCounter

        settings, clock = self.process.settings, self.process.clock
        counter = TokenCounter(model.facts.token_factor, model.facts.token_samples)
        room = Room(
            settings,
            counter,
            self.snapshots,
            keep=self.compressed,
            before=self.before_compression,
            clock=clock,
        )
        whom = PromptModel(session_id="", model=model.name, window=model.window, mode=self.mode)
        self.instruct()
        return Prompt(whom, settings, counter, self.entries, room, goals=self.goals)

    def instruct(self) -> None:
        """Tell the model what the project's own files ask of it, if they are trusted."""
        if not self.process.trusted:
            return
        from ollm.runtime.prompt.project_instructions import project_instructions

        found, warnings = project_instructions(self.scope.boundary, Path.cwd())
        for entry in found:
            self.entries.add_entry(entry)
        self.notices.extend(warnings)

    async def survey(self, window: int) -> None:
        """Tell the model which files there are, where that is wanted; the same words for the whole conversation."""
        tokens = min(self.process.settings.file_discovery.project_map, window // 16)
        if tokens and self.process.trusted:
            from ollm.runtime.prompt.project_map import project_survey

            entry = await project_survey(self.discovery, self.scope.path, tokens)
            if entry is not None:
                self.entries.add_entry(entry)

    async def before_compression(self) -> None:
        if self.hooks:
            await self.hooks.happened("before-compression", {})

    async def compressed(self, record: CompressionRecord) -> None:
        await self.session.compressed(record)
        if self.hooks:
            data = {"before": record.original_token_count, "after": record.compressed_token_count}
            await self.hooks.happened("after-compression", data)
