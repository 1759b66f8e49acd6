"""Package names imported on first use, so that importing the package itself costs nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_exports(
    package: str, names_by_module: Mapping[str, tuple[str, ...]], own_names: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Build `__getattr__` and `__dir__` for names defined by a package's modules. The package defines `own_names`."""
    places = {name: module for module, names in names_by_module.items() for name in names}

    def get_attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{package}.{places[name]}"), name)

    def list_names() -> list[str]:
        return sorted([*places, *own_names])

    return get_attribute, list_names
