"""Scope of glob, grep and ls: a directory (or one file), inside or approved, and the display of its paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.files import DiscoveryOptions
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.system.path_names import is_environment_file
from ollm.system.paths import (
    explain_login,
    explain_read_protection,
    make_tool_failure,
    show_name,
)
from ollm.tools.framework.base import ToolContext

if TYPE_CHECKING:
    from ollm.services.file_discovery.service import FileDiscoveryService


def drop_private_files(context: ToolContext, root: Path, paths: list[str]) -> list[str]:
    """Keep the paths below a root that may be read without confirmation."""
    places = context.boundary.places
    if any(place and place.is_relative_to(root) for place in (places.user_home, places.ollm_home)):
        return [path for path in paths if explain_read_protection(root / path, places) is None]
    text = "\0".join((*paths, ""))
    if "config\0" in text or "config.worktree\0" in text:
        paths = [path for path in paths if explain_login(str(root / path)) is None]
    if _is_harmless(text):
        return paths
    return [path for path in paths if _is_harmless(path) or not any(map(is_environment_file, path.split("/")))]


def describe_skipped(count: int) -> str:
    files, verb = format_count(count, "file"), "was" if count == 1 else "were"
    return f"{files} that may contain secrets (.env and the like) {verb} skipped; name one to read it"


def _is_harmless(text: str) -> bool:
    return text.isascii() and ".env" not in text.lower()


DirectoryPath = Annotated[str, Meta(min_length=1, description="Directory to look in.")]


class SearchScope(Data, frozen=True):
    """A place to search. `file` is set if a single file was named; `notes` are remarks about the place."""

    root: Path
    workspace: Path
    file: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def within(self) -> str | None:
        """The project whose rules apply, if the place is part of it."""
        return str(self.workspace) if self.root.is_relative_to(self.workspace) else None

    def render_path(self, relative: str) -> str:
        """Render a path below the root for reuse by the model: relative to the workspace, or absolute outside it."""
        path = self.root / relative if relative else self.root
        inside = path.relative_to(self.workspace) if path.is_relative_to(self.workspace) else path
        return show_name(str(inside))

    def still_contains(self, relative: str) -> bool:
        """Return True if a file that was read is still below the root: no link has replaced it meanwhile."""
        return Path(os.path.realpath(self.root / relative)).is_relative_to(self.root)


def render_link(name: str, path: str) -> str:
    """Render a symbolic link with its target, without following it."""
    try:
        return f"{name} -> {show_name(str(Path(path).readlink()))}"
    except OSError:
        return f"{name}  (gone)"


async def resolve_scope(context: ToolContext, discovery: FileDiscoveryService, path: str) -> SearchScope:
    """Resolve the path from the model. A path hidden by rules is searched anyway, with a note."""
    resolved = context.boundary.check(path)
    try:
        is_directory = resolved.is_dir()
        resolved.stat()
    except OSError as error:
        raise make_tool_failure(error, path) from error
    if not is_directory and not resolved.is_file():
        raise ToolFailure("NotARegularFile", f"{path} is neither a file nor a directory.")
    return SearchScope(
        root=resolved if is_directory else resolved.parent,
        workspace=context.workspace,
        file=None if is_directory else resolved.name,
        notes=await _describe_ignored(context, discovery, resolved),
    )


async def _describe_ignored(context: ToolContext, discovery: FileDiscoveryService, resolved: Path) -> tuple[str, ...]:
    if not resolved.is_relative_to(context.workspace) or resolved == context.workspace:
        return ()
    relative = str(resolved.relative_to(context.workspace))
    explained = await discovery.explain(str(context.workspace), relative)
    if explained.shown or explained.rule is None:
        return ()
    return (f"{show_name(relative)} is ignored ({explained.reason}); searched because you named it",)


class ReadableFiles(Data, frozen=True):
    """Files that may be read without confirmation, and remarks about the others. `search_paths` name them for a search:
    a directory stands for all files directly in it."""

    paths: list[str]
    search_paths: list[str]
    notes: tuple[str, ...] = ()


async def find_readable(
    context: ToolContext, discovery: FileDiscoveryService, scope: SearchScope, *groups: Sequence[str]
) -> ReadableFiles:
    """Find the files below a root that match a glob of every group and may be read without confirmation."""
    found = await discovery.find_paths(DiscoveryOptions(root=str(scope.root), within=scope.within), *groups)
    kept = search_paths = drop_private_files(context, scope.root, found.paths)
    skipped = set(found.paths).difference(kept)
    notes = (describe_skipped(len(skipped)), *found.notes) if skipped else found.notes
    if found.in_part is not None:
        in_part = found.in_part | {path.rpartition("/")[0] for path in skipped}
        search_paths = [f"./{directory}" for directory in found.directories if directory not in in_part]
        if len(search_paths) < len(found.directories):
            search_paths += [path for path in kept if path.rpartition("/")[0] in in_part]
    return ReadableFiles(paths=kept, search_paths=search_paths, notes=notes)
