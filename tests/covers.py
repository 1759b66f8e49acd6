"""Ties a test to the numbered requirements it proves: `@covers("S4.1", "P14")`."""

import pytest

covers = pytest.mark.covers
