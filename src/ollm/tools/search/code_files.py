"""The code below a directory: its readable files, and where they define a symbol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ollm.domain.errors import ToolFailure
from ollm.domain.files import DiscoveryOptions
from ollm.domain.struct import Data
from ollm.domain.suggest import suggest_names
from ollm.services.code_map.definition import normalize_symbol
from ollm.services.file_discovery import FileDiscoveryService
from ollm.tools.framework.base import ToolContext
from ollm.tools.search.scope import ReadableFiles, SearchScope, resolve_scope, select_readable

if TYPE_CHECKING:
    from ollm.services.code_map import CodeMapService

MAX_LISTED_PLACES = 12
MAX_COMPARED_NAMES = 50_000


class CodeNeeds(Data, frozen=True):
    """What outlines and maps take; `count` is how many tokens a text is for the model that asks."""

    discovery: FileDiscoveryService
    code_map: CodeMapService
    count: Callable[[str], int]


async def find_code_files(context: ToolContext, discovery: FileDiscoveryService, scope: SearchScope) -> ReadableFiles:
    """The files below a directory that may be read without asking."""
    options = DiscoveryOptions(root=str(scope.root), within=scope.within)
    return select_readable(context, scope, await discovery.find_paths(options))


async def find_symbol_file(context: ToolContext, needs: CodeNeeds, path: str, symbol: str) -> str:
    """The one file below a directory that defines a symbol. Raises ToolFailure when none or several do."""
    scope = await resolve_scope(context, needs.discovery, path)
    files = await find_code_files(context, needs.discovery, scope)
    found = await needs.code_map.find_symbol(scope.root, files.paths, symbol)
    places = {match.path: match.definition for match in found}
    if not places:
        names = await needs.code_map.list_symbols(scope.root, files.paths)
        raise ToolFailure("NotFound", f"No file in {path} defines {symbol}{await suggest_symbol(symbol, names)}")
    if len(places) > 1:
        listed = [f"{scope.render_path(file)} (line {match.line})" for file, match in places.items()]
        more = f" and {len(listed) - MAX_LISTED_PLACES} more" if len(listed) > MAX_LISTED_PLACES else ""
        told = ", ".join(listed[:MAX_LISTED_PLACES])
        raise ToolFailure("NotFound", f"{symbol} is defined in {told}{more}. Say which with path.")
    return scope.render_path(next(iter(places)))


async def suggest_symbol(symbol: str, names: list[str]) -> str:
    """The end of a sentence: what may have been meant, else what to do."""
    wanted = normalize_symbol(symbol)
    last = wanted.rpartition(".")[2]
    same = [name for name in names if name.rpartition(".")[2].casefold() == last.casefold()][:3]
    near = same or await asyncio.to_thread(suggest_names, wanted, names[:MAX_COMPARED_NAMES], 3)
    return f"; did you mean {' or '.join(near)}?" if near else ". Search for it with grep."
