"""Front matter of commands and skills."""

import pytest

from ollm.domain.front_matter import split_front_matter


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no front matter", {}, "no front matter"),
        ("---\nname: a\n---\nbody", {"name": "a"}, "body"),
        ("---\nname: 'a'\ndescription: \"b: c\"\n---\n\nbody", {"name": "a", "description": "b: c"}, "body"),
        ("---\ndescription: >\n  two\n  lines\nother: x\n---\n", {"description": "two lines", "other": "x"}, ""),
        ("---\nmetadata:\n  version: 1\n# note\n---\nb", {"metadata": "version: 1"}, "b"),
        ("---\ntools:\n- ls\n- grep\nmode: code\n---\nb", {"tools": "- ls - grep", "mode": "code"}, "b"),
        ("---\nnever closed\n", {}, "---\nnever closed\n"),
        ("\ufeff---\nname: a\n---\nbody", {"name": "a"}, "body"),
    ],
)
def test_the_fields_and_the_text_are_told_apart(text: str, fields: dict[str, str], body: str) -> None:
    assert split_front_matter(text) == (fields, body)
