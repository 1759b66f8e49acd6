"""The kinds of files ripgrep knows by name, such as `py` or `rust`."""

from __future__ import annotations

import asyncio
import os
import subprocess
from functools import cache

from ollm.domain.errors import ToolFailure
from ollm.domain.suggest import suggest_names
from ollm.system.sandbox.confined import choose_home, make_helper_environment, start_confined
from ollm.tools.search.ripgrep import find_ripgrep


async def find_type_globs(name: str) -> tuple[str, ...]:
    """The globs of a file type, or a ValidationError with the nearest names there are."""
    types = await asyncio.to_thread(_load_types)
    if name not in types:
        near = suggest_names(name, sorted(types), 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ", such as py, ts, rust, md."
        raise ToolFailure("ValidationError", f"fileType: there is no type {name!r}{hint}")
    return types[name]


@cache
def _load_types() -> dict[str, tuple[str, ...]]:
    printed = start_confined(_run_type_list, home=choose_home(find_ripgrep()))
    listed = (line.partition(": ") for line in printed.splitlines())
    return {name: tuple(globs.split(", ")) for name, _, globs in listed}


def _run_type_list() -> str:
    command = [find_ripgrep(), "--no-config", "--type-list"]
    return subprocess.run(
        command, capture_output=True, check=True, text=True, env=make_helper_environment(os.environ)
    ).stdout
