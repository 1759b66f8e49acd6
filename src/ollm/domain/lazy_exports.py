"""Package names imported on first use, so that importing the package itself costs nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_exports(package: str, own_names: tuple[str, ...]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Build `__getattr__` and `__dir__` for the names that a package imports for type checkers. The package defines
    `own_names` itself."""
    places: dict[str, str] = {}

    def find_places() -> dict[str, str]:
        if not places:
            places.update(read_exports(package))
        return places

    def get_attribute(name: str) -> Any:
        if name == "__all__":
            return sorted(find_places())
        if name not in find_places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(places[name]), name)

    def list_names() -> list[str]:
        return sorted([*find_places(), *own_names])

    return get_attribute, list_names


def read_exports(package: str) -> dict[str, str]:
    """Read from the source of a package the lines `from MODULE import NAME as NAME`, as module by name."""
    import re
    from importlib.util import find_spec

    loader: Any = getattr(find_spec(package), "loader", None)
    found = re.findall(r"^    from (\S+) import (\w+) as \2$", loader.get_source(package), re.MULTILINE)
    return {name: module for module, name in found}
