"""What the pages show besides sessions: tools, the policy and what it says, models with their card, settings."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ollm.app import ProcessScope, WorkspaceScope
from ollm.app.run_tool import create_tool_registry, serialize_tools
from ollm.daemon.service import DaemonService, parse_workspace
from ollm.domain.errors import UsageError

V = TypeVar("V")


class SetupViews:
    """Each is of a workspace; none for what counts everywhere."""

    def __init__(self, service: DaemonService) -> None:
        self._service = service

    async def _view(self, workspace: str, look: Callable[[ProcessScope, Path], V]) -> V:
        place = parse_workspace(workspace) if workspace else self._service.process.user_home

        def run() -> V:
            process = self._service.make_process(place)
            try:
                return look(process, place)
            finally:
                process.close()

        return await asyncio.to_thread(run)

    async def list_tools(self, workspace: str) -> list[dict[str, Any]]:
        def view(process: ProcessScope, place: Path) -> list[dict[str, Any]]:
            return serialize_tools(create_tool_registry(place, process).list())

        return await self._view(workspace, view)

    async def show_policy(self, workspace: str) -> dict[str, Any]:
        from ollm.app.policy_views import serialize_policy

        return await self._view(
            workspace, lambda process, place: serialize_policy(WorkspaceScope(process, place).create_policy())
        )

    async def check_policy(self, workspace: str, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        from ollm.app.policy_views import check_call

        return await self._view(
            workspace, lambda process, place: check_call(WorkspaceScope(process, place).create_policy(), tool, params)
        )

    async def backtest_policy(self, workspace: str, rules: str) -> dict[str, Any]:
        """What these rules would have said to every call that was recorded."""
        from ollm.app.policy_views import run_backtest

        def view(process: ProcessScope, place: Path) -> dict[str, Any]:
            scope = WorkspaceScope(process, place)
            problems: list[str] = []
            with tempfile.TemporaryDirectory(prefix="ollm-rules-") as folder:
                file = Path(folder) / "rules.yaml"
                file.write_text(rules, encoding="utf-8", errors="replace")
                try:
                    proposed = scope.create_policy_from_file(file, builtin=True)
                except UsageError as error:
                    raise UsageError(
                        f"These rules cannot be used: {describe_mistake(error.message, file)}.",
                        action="Write them as in a config file.",
                    ) from error
                problems += [text.replace(f"at {file}:", "in line ") for text in proposed.rules.problems]
                found = run_backtest(process, scope.create_policy(), proposed, problems.append)
            return {**found, "problems": problems}

        return await self._view(workspace, view)

    async def list_models(self) -> dict[str, Any]:
        """Those there are, and what was learnt about each."""
        from ollm.app.model_list import collect_models

        process = self._service.make_process()
        problems: list[str] = []
        found = await collect_models(process, problems.append)
        facts = [msgspec.to_builtins(one) for one in process.model_facts.list_all()]
        return {**found, "facts": facts, "problems": problems}

    async def show_settings(self, workspace: str) -> dict[str, Any]:
        """The settings in force with secrets hidden, where each that is set comes from, and what is wrong with them."""
        from ollm.config.show import redact_settings

        def view(process: ProcessScope, _: Path) -> dict[str, Any]:
            loaded = process.loaded_settings
            return {
                "settings": redact_settings(loaded.settings),
                "sources": {key: str(place) for key, place in loaded.sources.items()},
                "problems": [str(problem) for problem in loaded.problems],
                "trusted": process.trusted,
            }

        return await self._view(workspace, view)


def describe_mistake(text: str, file: Path) -> str:
    """What is wrong, by line and column, without the name of the file: it is a temporary one."""
    found = re.fullmatch(r"(?::(\d+):(\d+))? ?(.*)", text.removeprefix(str(file)).rstrip("."), re.DOTALL)
    line, column, what = found.groups() if found else (None, None, text)
    if line is None:
        return f"it {what}" if what.startswith("is ") else str(what)
    return f"line {line}, column {column}{'' if what.startswith('is ') else ':'} {what}"
