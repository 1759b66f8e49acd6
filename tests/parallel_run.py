"""What a run with several workers does for speed: long files first, and few words between the processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from xdist.scheduler import LoadFileScheduling

QUICK_SECONDS = 0.05

# Rooms whose files take long come first, so that the last files of a run are short and the workers end together.
LONG_ROOMS = (
    *("policy", "cli", "archive", "extensions", "daemon", "acp", "app", "house"),
    *("system", "services", "integration", "runtime", "providers"),
)

# Tests of one server: a worker that has it runs them all.
SHARED_SERVERS = (
    ("tests/archive/",),
    ("tests/runtime/test_real_model.py", "tests/providers/local_models/test_embedded.py"),
)


def order_files(items: list[pytest.Item]) -> None:
    places = {f"tests/{name}": place for place, name in enumerate(LONG_ROOMS)}
    items.sort(key=lambda item: places.get("/".join(item.nodeid.split("/", 2)[:2]), len(places)))


class _Collected(list[str]):
    """The tests of a worker, each with its place at hand."""

    def __init__(self, nodeids: Sequence[str]) -> None:
        super().__init__(nodeids)
        self._places = {nodeid: place for place, nodeid in enumerate(nodeids)}

    def index(self, nodeid: str, *bounds: Any) -> int:
        return self._places[nodeid]


class FileScheduling(LoadFileScheduling):
    """A file at a time for each worker; what is done is forgotten, not counted again after each of thousands of tests."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Collected(collection)

    def _split_scope(self, nodeid: str) -> str:
        shared = (places[0] for places in SHARED_SERVERS if nodeid.startswith(places))
        return next(shared, super()._split_scope(nodeid))

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        nodeid = self.registered_collections[node][item_index]
        file = self._split_scope(nodeid)
        del self.assigned_work[node][file][nodeid]
        if not self.assigned_work[node][file]:
            del self.assigned_work[node][file]


def run_with_few_reports(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run it and tell the process that prints what it needs: of a test that passes, that it did. Nothing where somebody
    wants to see more."""
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.verbose > 0 or option.xmlpath:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > QUICK_SECONDS:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
