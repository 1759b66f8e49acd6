"""Comments and dots that stand for code."""

import pytest

from ollm.providers.text_calls.placeholders import has_placeholder, leaves_out


@pytest.mark.parametrize(
    "line",
    [
        "# ... rest of code",
        "# ... rest of the code ...",
        "    # ... existing code ...",
        "// ... remaining code",
        "// ...",
        "/* … unchanged */",
        "<!-- rest of the page -->",
        "# rest of the file remains unchanged",
        "-- existing functions stay the same",
        "# other functions unchanged",
        "# your code here",
        "{/* ... rest of the component */}",
    ],
)
def test_a_comment_stands_for_code(line: str) -> None:
    assert has_placeholder(f"x = 1\n{line}\n")
    assert not has_placeholder(f"x = 1\n{line}\n", f"{line}\n"), "the file's own"


@pytest.mark.parametrize(
    "line",
    [
        "# Read the remaining lines of the file",
        "# Other functions",
        "# Existing users keep their password",
        "# Wait... then go on",
        "print('...')",
        "# the rest is up to you",
        "# ---",
        "// see the existing code for why",
    ],
)
def test_other_comments_do_not(line: str) -> None:
    assert not has_placeholder(f"{line}\n")


def test_dots_leave_out_what_stood_there() -> None:
    assert leaves_out("def f():\n    ...\n", "def f():\n    return 1\n")
    assert not leaves_out("def f():\n    ...\n", "def f():\n    ...\n")
    assert not has_placeholder("class P(Protocol):\n    def f(self): ...\n")
