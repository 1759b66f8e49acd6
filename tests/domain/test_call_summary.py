"""A recorded call in words."""

from ollm.domain.call_summary import summarize_call


def test_a_known_tool_says_what_it_did_to_what_and_another_gives_its_name() -> None:
    assert summarize_call("shell", {"command": "pytest\n  -q"}) == "Run pytest -q"
    assert summarize_call("edit_file", {"path": "a.py", "edits": []}) == "Edit a.py"
    assert summarize_call("edit_file", {}) == "edit_file"
    assert summarize_call("mcp_x", {"path": "a"}) == "mcp_x"
    assert len(summarize_call("grep", {"pattern": "x" * 900})) < 230
