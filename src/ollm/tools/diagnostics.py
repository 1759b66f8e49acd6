"""List the errors and warnings of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from ollm.domain.tools import ToolResult
from ollm.services.syntax_check import find_syntax_error
from ollm.tools.files.file_text import read_whole_text
from ollm.tools.framework.base import WIDE_WINDOW_TOKENS, SmallForm, Tool, ToolContext

if TYPE_CHECKING:
    from ollm.tools.catalogue import ToolServices

MAX_FILES = 20


class Diagnostics(Tool["ToolServices"], frozen=True):
    """List errors and warnings in files, by their language server or parser."""

    name: ClassVar = "diagnostics"
    category: ClassVar = "read"
    aliases: ClassVar = {"path": "paths", "files": "paths"}
    priority: ClassVar = {"code": 11, "debug": 11, "plan": 12, "assistant": 12}
    min_window: ClassVar = WIDE_WINDOW_TOKENS
    small: ClassVar = SmallForm(description="List errors in files.")

    paths: Annotated[tuple[str, ...], Meta(max_length=MAX_FILES, description="Default: all known ones.")] = ()

    def summary(self) -> str:
        return f"Check {', '.join(self.paths)}" if self.paths else "List errors and warnings"

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        texts = {context.boundary.check(given): _read_text(context, given) for given in self.paths}
        services = [service for path in texts if (service := context.find_diagnostics(path))]
        service = services[0] if services else needs.diagnostics.built
        lines, checked = await service.list_problems(texts) if service else ([], set())
        servers = service.describe_servers() if service else []
        unchecked = {_shorten(context.workspace, path): text for path, text in texts.items() if path not in checked}
        faults = ((name, find_syntax_error(name, text)) for name, text in unchecked.items())
        lines += [f"{name}: {fault}" for name, fault in faults if fault]
        if not lines and (checked or (not self.paths and service and service.is_settled)):
            lines = ["No errors or warnings."]
        if unchecked:
            state = f" {'; '.join(servers)}." if servers else ""
            lines.append(f"No report by a language server: {', '.join(unchecked)}.{state}")
        busy = service is not None and service.is_checking
        text = "\n".join(lines) or ("No errors so far; a server is still checking." if busy else "No errors known.")
        display = "\n".join((text, "", *(servers or [f"No language server is running.{needs.untrusted_servers}"])))
        return ToolResult(llm_content=text if self.paths else display, return_display=display)


def _read_text(context: ToolContext, given: str) -> str:
    with context.open_file(given) as file:
        return read_whole_text(given, file, context.settings.read_file.max_bytes)


def _shorten(workspace: Path, path: Path) -> str:
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
