"""Changing a file: what is there now, the difference, and putting the new content in its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.file_change import (
    MAX_DIFF_LINES,
    MAX_SHOWN_CHARS,
    make_diff,
    read_current,
    refuse_stale,
    write_change,
)
from ollm.tools.framework.base import ToolContext

TEXT = st.text(alphabet="ab \n\t", max_size=60)


@given(before=TEXT, after=TEXT)
def test_a_diff_says_what_difflib_says(before: str, after: str) -> None:
    import difflib

    ours = make_diff("f", before, after)
    added = sum(line.startswith("+") and not line.startswith("+++") for line in ours.splitlines())
    whole = difflib.unified_diff(before.split("\n"), after.split("\n"))
    plain = sum(line.startswith("+") and not line.startswith("+++") for line in whole)

    assert abs(added - plain) <= 1 or added <= plain


@pytest.fixture
def ledger(tmp_path: Path) -> EditLedger:
    return EditLedger(lambda: tmp_path / "undo")


@pytest.mark.parametrize(("size", "shown"), [(MAX_SHOWN_CHARS, True), (MAX_SHOWN_CHARS + 1, False)])
def test_a_long_file_that_others_changed_is_to_be_read_again(
    context: ToolContext, workspace: Path, ledger: EditLedger, size: int, shown: bool
) -> None:
    path = workspace / "f"
    path.write_bytes(b"before")
    ledger.remember_file(path, path.stat(), b"before")
    path.write_bytes(b"x" * size)
    now = read_current(context, "f")
    assert now is not None

    with pytest.raises(ToolFailure) as caught:
        refuse_stale(context, ledger, "f", now)
    assert caught.value.message.endswith("x" if shown else "Read it again, then redo the change.")


async def test_a_change_that_fails_leaves_no_copy_to_undo_with(
    context: ToolContext, workspace: Path, ledger: EditLedger, tmp_path: Path
) -> None:
    (workspace / "f").write_bytes(b"there already")

    with pytest.raises(ToolFailure):
        await write_change(context, ledger, "f", None, b"new")
    assert (workspace / "f").read_bytes() == b"there already"
    assert [path for path in (tmp_path / "undo").rglob("*") if path.is_file()] == []


def test_a_diff_that_nobody_would_read_is_counted() -> None:
    before = "".join(f"a{number}\n" for number in range(MAX_DIFF_LINES + 1))

    assert make_diff("f", before, "x\n") == "--- f\n+++ f\n(4,001 lines become 1)\n"
    assert make_diff("f", "same\n", "same\n") == ""
    assert make_diff("f", "", "new\n") == "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+new\n"
