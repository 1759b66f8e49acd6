"""What tests of the composition share."""

from pathlib import Path

import pytest

from tests.app.places import AppPlace


@pytest.fixture
def place(tmp_path: Path) -> AppPlace:
    return AppPlace(tmp_path)
