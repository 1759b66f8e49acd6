from pathlib import Path

import pytest

from tests.services.snapshots.support import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "context-snapshots")
