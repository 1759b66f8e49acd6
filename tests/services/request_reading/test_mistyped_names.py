"""Names of files that are spelled wrongly."""

from __future__ import annotations

import pytest

from ollm.services.request_reading.mistyped_names import mend_file_names

NAMES = ["preferences.json", "src/calculator.py", "report.py", "test_alpha.py", "config_dev.toml", "img2024.txt"]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("set theme to dark in prefrences.json", "set theme to dark in preferences.json"),
        ("Fix src/calcualtor.py", "Fix src/calculator.py"),
        ("Fix calcualtor.py", "Fix src/calculator.py"),
        ("What is in Preferences.json?", "What is in preferences.json?"),
    ],
)
def test_the_file_that_is_meant_takes_the_place_of_a_slip(asked: str, meant: str) -> None:
    assert mend_file_names(asked, NAMES) == meant


@pytest.mark.parametrize(
    "asked",
    [
        "Create a file prefrences.json with {}",
        "Rename preferences.json to preference.json",
        "Move total from report.py to reports.py",
        "Add tests to test_alpho.txt",
        "Fix config_den.toml",
        "Read img2025.txt",
        "Fix src/calculator.py",
        "Fix notes.txt",
    ],
)
def test_other_names_stay(asked: str) -> None:
    assert mend_file_names(asked, NAMES) == asked


def test_a_page_may_be_called_by_its_first_name() -> None:
    assert mend_file_names("Say so in the README.", ["README.md", "a.py"]) == "Say so in the README.md."
    assert mend_file_names("Say so in the readme", ["README.rst"]) == "Say so in the README.rst"
    assert (
        mend_file_names("the README and the changelog", ["README.md", "README.rst"]) == "the README and the changelog"
    )
    assert mend_file_names("pin x in the requirements", ["requirements.txt"]) == "pin x in the requirements.txt"
    assert mend_file_names("Fix the README.txt", ["README.md"]) == "Fix the README.txt"


def test_of_two_like_names_none_is_chosen() -> None:
    assert mend_file_names("Fix settngs.py", ["settings.py", "settinggs.py"]) == "Fix settngs.py"
