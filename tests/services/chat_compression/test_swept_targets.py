"""What every target comes to stays what it was: a difference is looked at, and kept or mended."""

import pytest

from tests.services.chat_compression.swept_targets import describe, list_sweeps, read_recorded


@pytest.mark.parametrize("name", list_sweeps())
def test_each_target_comes_to_what_it_came_to(name: str) -> None:
    assert describe(name) == read_recorded()[name]
