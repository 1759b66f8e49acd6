"""What the tests of the tools share: a workspace, and a context in it."""

from pathlib import Path

import pytest

from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext
from tests.tools.drive import Driver


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.fixture
def drive(workspace: Path) -> Driver:
    return Driver(workspace)


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    return ToolContext(boundary=Boundary.around(workspace))
