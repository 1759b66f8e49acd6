"""Calls as an editor shows them: kind, places, changes."""

from pathlib import Path
from typing import Any

import pytest

from ollm.acp.tool_calls import MAX_TITLE_CHARS, ToolCallViews, make_valid, shorten_title, split_diff
from ollm.domain.tools import ErrorInfo, FileChange, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.edit_file import EditFile
from ollm.tools.files.file_change import make_diff
from ollm.tools.framework.base import make_spec
from ollm.tools.framework.registry import ToolRegistry
from ollm.tools.read_file import ReadFile


@pytest.fixture
def views(tmp_path: Path) -> ToolCallViews:
    registry = ToolRegistry()
    registry.register(make_spec(ReadFile, EditLedger()))
    registry.register(make_spec(EditFile, EditLedger()))
    return ToolCallViews(registry, tmp_path)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "location"),
    [
        ("read_file", {"path": "a.py", "startLine": 7}, "read", {"path": "a.py", "line": 7}),
        ("read_file", {"file_path": "a.py"}, "read", {"path": "a.py"}),
        ("edit_file", {"path": "b.py", "old": "x", "new": "y"}, "edit", {"path": "b.py"}),
        ("read_file", {"wrong": 1}, "read", None),
        ("grep", {}, "search", None),
        ("unknown", {"path": "a"}, "other", None),
    ],
)
def test_a_call_has_its_kind_and_whole_paths(
    views: ToolCallViews, tmp_path: Path, name: str, arguments: dict[str, Any], kind: str, location: dict[str, Any]
) -> None:
    found = views.read_call(name, arguments)

    assert found.kind == kind
    whole = [{**location, "path": str(tmp_path / location["path"])}] if location else []
    assert list(found.locations) == whole


def test_a_diff_becomes_old_and_new_text_hunk_by_hunk() -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    after = before.replace("line 3\n", "line three\n").replace("line 30\n", "")
    first, second = split_diff(make_diff("src/a.py", before, after))

    assert (first.path, second.path) == ("src/a.py", "src/a.py")
    assert "line 3\n" in (first.before or "")
    assert "line three\n" in first.after
    assert "line 30\n" in (second.before or "")
    assert "line 30\n" not in second.after


def test_a_new_file_has_no_old_text_and_a_change_too_long_to_show_is_none() -> None:
    assert split_diff(make_diff("new", "", "one\n")) == [FileChange(path="new", before=None, after="one\n")]
    assert split_diff("--- a\n+++ a\n(9,000 lines become 1)\n") == []
    assert split_diff("") == []


def test_a_failed_edit_shows_its_reason_and_no_change(views: ToolCallViews) -> None:
    failed = ToolResult(llm_content="no", error=ErrorInfo(type="FileChanged", message="It changed."))

    assert views.render_result(failed, (FileChange(path="a", before="x", after="y"),)) == [
        {"type": "content", "content": {"type": "text", "text": "It changed."}}
    ]


def test_titles_are_short_and_text_can_be_sent() -> None:
    assert len(shorten_title("x" * 1000)) == MAX_TITLE_CHARS
    assert make_valid("half \ud83d") == "half ?"
