"""What this machine can hold back is found by trying."""

from pathlib import Path

from ollm.system.sandbox.levels import detect_level
from tests.ordinary_user import as_ordinary_user


def test_the_level_is_found_by_trying() -> None:
    assert detect_level() == "full"


def test_the_level_is_found_by_an_ordinary_user() -> None:
    def body(_: Path) -> None:
        from ollm.system.sandbox import levels

        assert levels._works("full")
        assert levels._works("landlock")

    as_ordinary_user(body)
