"""What is read from four hundred requests stays what it was: a difference is looked at, and kept or mended."""

import pytest

from tests.services.request_reading.told_requests import ASPECTS, PARTS, REQUESTS, describe, list_recorded


@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_requests_are_read_as_they_were(aspect: str, part: int) -> None:
    assert describe(aspect, REQUESTS[part::PARTS]) == list_recorded(aspect)[part::PARTS]
