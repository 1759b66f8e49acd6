"""What a run with several workers does for speed: long files first, and few words between the processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from xdist.scheduler import LoadFileScheduling

QUICK_SECONDS = 0.05

# The longest first; whoever is not named comes after them. A run ends well when its last files are short.
LONG_FILES = (
    "tests/cli/test_blocks.py",
    "tests/cli/policy/test_red_team.py",
    "tests/cli/test_long_chat.py",
    "tests/cli/test_oneshot_models.py",
    "tests/cli/test_settings_by_effect.py",
    "tests/cli/test_oneshot.py",
    "tests/cli/test_sandbox.py",
    "tests/policy/test_verdicts.py",
    "tests/cli/test_giant_sessions.py",
    "tests/cli/test_first_minutes.py",
    "tests/cli/test_services_by_effect.py",
    "tests/cli/test_chat_sessions.py",
    "tests/cli/test_tasks.py",
    "tests/cli/test_chat.py",
    "tests/services/chat_compression/test_service.py",
    "tests/services/file_discovery/test_like_git.py",
    "tests/cli/screen/test_screen.py",
    "tests/cli/test_hostile_input.py",
    "tests/cli/test_damage.py",
    "tests/cli/test_workspace_memory.py",
    "tests/policy/test_shell.py",
    "tests/daemon/test_openapi.py",
    "tests/daemon/test_pages.py",
    "tests/cli/sessions/test_rewind.py",
    "tests/daemon/test_endings.py",
    "tests/cli/test_mcp.py",
    "tests/cli/test_resume.py",
    "tests/services/redaction/test_redaction.py",
    "tests/services/test_loop_detection.py",
    "tests/extensions/mcp/test_connection.py",
    "tests/system/test_sandbox_work.py",
    "tests/archive/test_row_security.py",
    "tests/cli/test_small_models.py",
    "tests/daemon/test_hub.py",
    "tests/cli/screen/test_input_field.py",
    "tests/cli/test_questions.py",
    "tests/integration/test_recorded_model_servers.py",
)


def order_files(items: list[pytest.Item]) -> None:
    """Those that take long first, so that the workers end together."""
    places = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


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
