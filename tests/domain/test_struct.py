"""The one way data looks: frozen, by keyword, camelCase outside; sparse data leaves its defaults out."""

import msgspec
import pytest

from ollm.domain.struct import Data, SparseData


class Full(Data, frozen=True):
    first_name: str
    times_seen: int = 0


class Sparse(SparseData, frozen=True):
    first_name: str
    times_seen: int = 0


def test_names_are_camel_case_outside() -> None:
    assert msgspec.to_builtins(Full(first_name="a")) == {"firstName": "a", "timesSeen": 0}


def test_sparse_data_writes_no_defaults() -> None:
    assert msgspec.to_builtins(Sparse(first_name="a")) == {"firstName": "a"}
    assert msgspec.to_builtins(Sparse(first_name="a", times_seen=2)) == {"firstName": "a", "timesSeen": 2}


def test_data_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Full(first_name="a").first_name = "b"  # type: ignore[misc]
