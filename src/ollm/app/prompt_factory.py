"""What the prompt of one conversation is made of, and who hears when it is compressed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.storage import Storage

if TYPE_CHECKING:
    from ollm.domain.context import CompressionRecord
    from ollm.domain.lazy import Lazy
    from ollm.extensions.hooks import Hooks
    from ollm.runtime.model.model import Model
    from ollm.runtime.prompt.compaction import Compactor
    from ollm.runtime.prompt.prompt import Prompt


class PromptFactory:
    """A prompt is built once the model is known: its window decides what fits."""

    def __init__(self, storage: Storage, hooks: Lazy[Hooks | None]) -> None:
        self.storage = storage
        self.scope = storage.scope
        self.process = storage.process
        self._hooks = hooks

    def build_prompt(self, model: Model) -> Prompt:
        from ollm.runtime.prompt.prompt import Prompt, PromptModel

        counter = self.storage.counter
        counter.calibrate(model.facts.token_factor, model.facts.token_samples)
        prompt_model = PromptModel(session_id="", model=model.name, window=model.window, mode=self.storage.mode)
        self.add_project_instructions()
        self.add_skills(model.window)
        return Prompt(prompt_model, self.process.settings, counter, self.storage.entries, goals=self.storage.goals)

    def build_compactor(self, prompt: Prompt) -> Compactor:
        from ollm.runtime.prompt.compaction import Compactor

        return Compactor(
            self.process.settings,
            prompt.counter,
            self.storage.snapshots,
            keep=self.record_compression,
            before=self.announce_compression,
            clock=self.process.clock,
        )

    def add_project_instructions(self) -> None:
        """Tell the model what the project's own files ask of it, if they are trusted."""
        if not self.process.trusted:
            return
        from ollm.runtime.prompt.project_instructions import read_project_instructions

        found, warnings = read_project_instructions(self.scope.boundary, Path.cwd())
        for entry in found:
            self.storage.entries.add_entry(entry)
        self.storage.notices.extend(warnings)

    def add_skills(self, window: int) -> None:
        """Tell the model which skills there are, each in a line."""
        directories = [directory for directory in self.storage.skill_directories if directory.is_dir()]
        if not directories:
            return
        from ollm.runtime.prompt.skills import build_skills_entry, find_skills

        entry = build_skills_entry(find_skills(directories, self.scope.path), window)
        if entry is not None:
            self.storage.entries.add_entry(entry)

    async def add_project_map(self, window: int) -> None:
        """Tell the model which files there are, where that is wanted; the same words for the whole conversation."""
        tokens = min(self.process.settings.file_discovery.project_map, window // 16)
        if tokens and self.process.trusted:
            from ollm.runtime.prompt.project_map import build_project_map_entry

            entry = await build_project_map_entry(self.scope.discovery, self.scope.path, tokens, self.scope.code_map)
            if entry is not None:
                self.storage.entries.add_entry(entry)

    async def announce_compression(self) -> None:
        if hooks := self._hooks.get():
            await hooks.run_event("before-compression", {})

    async def record_compression(self, record: CompressionRecord) -> None:
        await self.storage.session.record_compression(record)
        if hooks := self._hooks.get():
            data = {"before": record.original_token_count, "after": record.compressed_token_count}
            await hooks.run_event("after-compression", data)
