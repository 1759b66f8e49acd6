"""Which files are of which language."""

from ollm.services.code_map.languages import belongs_on_map, find_language, get_family, get_suffix, is_code


def test_a_language_is_known_by_the_ending() -> None:
    known = {name: found.name if (found := find_language(name)) else None for name in ("a.py", "b/c.TSX", "x.h", "y")}

    assert known == {"a.py": "python", "b/c.TSX": "tsx", "x.h": "c", "y": None}


def test_a_hidden_file_has_no_ending() -> None:
    assert get_suffix(".bashrc") == ""
    assert get_suffix("a.b/c") == ""
    assert get_suffix(".x.py") == "py"


def test_text_is_on_the_map_but_no_code_and_pictures_are_not() -> None:
    assert belongs_on_map("README.md")
    assert not is_code("README.md")
    assert is_code("Makefile")
    assert not belongs_on_map("a.png")
    assert not belongs_on_map(".env")


def test_languages_that_call_each_other_are_one_family() -> None:
    assert get_family("a.tsx") == get_family("b.js")
    assert get_family("a.h") == get_family("b.cpp")
    assert get_family("a.py") != get_family("b.rb")
