"""What tests of the composition share."""

from pathlib import Path

import pytest

from tests.app.places import AppPlace
from tests.runtime.conftest import talking

__all__ = ["talking"]


@pytest.fixture
def place(tmp_path: Path) -> AppPlace:
    return AppPlace(tmp_path)
