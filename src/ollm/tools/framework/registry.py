"""The tools there are (T1): by name, replaceable, always in the same order."""

from __future__ import annotations

from typing import Any, overload

from ollm.domain.tools import ToolSchema
from ollm.tools.framework.base import Needs, Tool, ToolSpec, make_spec


class ToolRegistry:
    """Holds `ToolSpec`s. A tool class is registered together with what its `run` needs besides the context."""

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}

    @overload
    def register(self, tool: ToolSpec) -> None: ...

    @overload
    def register(self, tool: type[Tool[None]]) -> None: ...

    @overload
    def register(self, tool: type[Tool[Needs]], needs: Needs) -> None: ...

    def register(self, tool: ToolSpec | type[Tool[Any]], needs: Any = None) -> None:
        """Add a tool; one of the same name is replaced (T1.2)."""
        spec = tool if isinstance(tool, ToolSpec) else make_spec(tool, needs)
        self._specs[spec.name] = spec

    def unregister(self, name: str) -> bool:
        """Take a tool out; False when there was none of that name."""
        return self._specs.pop(name, None) is not None

    def get(self, name: str) -> ToolSpec | None:
        return self._specs.get(name)

    def list(self) -> list[ToolSpec]:
        """All tools, by name."""
        return [self._specs[name] for name in sorted(self._specs)]

    def get_function_schemas(self, names: tuple[str, ...] | None = None) -> tuple[ToolSchema, ...]:
        """The tools as models are told of them, by name; `names` narrows them to a mode's set."""
        return tuple(spec.schema for spec in self.list() if names is None or spec.name in names)

    def find_nearest(self, name: str) -> tuple[str, ...]:
        """Up to three tools whose names look like this one."""
        from ollm.domain.suggest import suggest_names

        return tuple(suggest_names(name, sorted(self._specs), 3))
