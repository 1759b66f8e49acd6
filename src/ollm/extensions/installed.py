"""Extensions that came with an installed package, found by its entry points. Looking for them costs some 35 ms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ollm.extensions.manifest import Addition, Kind, Manifest

GROUPS: dict[Kind, str] = {
    "tools": "ollm.tools",
    "context": "ollm.context",
    "searchBackends": "ollm.search_backends",
    "providers": "ollm.providers",
}


class ExtensionPackage:
    """A package with entry points of ours; each is loaded by what it adds."""

    def __init__(self, manifest: Manifest, loading: dict[Addition, Callable[[], Any]]) -> None:
        self.manifest = manifest
        self._loading = loading

    def load(self, addition: Addition) -> Any:
        return self._loading[addition]()


def find_packages() -> dict[str, ExtensionPackage]:
    """Every installed package that extends ollm, by its name."""
    from importlib.metadata import entry_points

    found: dict[str, list[tuple[Addition, Any]]] = {}
    for kind, group in GROUPS.items():
        for point in entry_points(group=group):
            if point.dist is not None:
                addition = Addition(kind=kind, name=point.name, target=point.value)
                found.setdefault(point.dist.name.lower().replace("_", "-"), []).append((addition, point))
    return {name: _build_package(name, points) for name, points in found.items()}


def _build_package(name: str, points: list[tuple[Addition, Any]]) -> ExtensionPackage:
    dist = points[0][1].dist
    manifest = Manifest(
        name=name,
        version=dist.version,
        description=dist.metadata["Summary"] or "",
        adds=tuple(addition for addition, _ in points),
        place=f"the package {dist.name}",
    )
    return ExtensionPackage(manifest, {addition: point.load for addition, point in points})
