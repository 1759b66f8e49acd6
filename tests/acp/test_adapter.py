"""The one module that knows the protocol's library: versions, errors, and that no other one does."""

import re
from pathlib import Path

import pytest
from acp import RequestError

import ollm
from tests.acp.editor import editing

SOURCE = Path(ollm.__file__).parent


def test_no_other_module_imports_the_library() -> None:
    imports = re.compile(r"^\s*(?:from|import) acp\b", re.MULTILINE)
    found = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if imports.search(path.read_text("utf-8"))}

    assert found == {Path("acp/adapter.py")}


async def test_authentication_asks_for_nothing(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        await editor.agent.authenticate(method_id="any")


async def test_errors_say_what_is_wrong_with_the_right_code(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        with pytest.raises(RequestError, match="absolute path") as relative:
            await editor.agent.new_session(cwd="project", mcp_servers=[])
        with pytest.raises(RequestError, match="not a directory"):
            await editor.agent.new_session(cwd=str(tmp_path / "none"), mcp_servers=[])
        with pytest.raises(RequestError, match="is not open") as unknown:
            await editor.say("nothing", "hi")

    assert (relative.value.code, unknown.value.code) == (-32602, -32002)
    assert relative.value.data == {"reason": "invalid-params"}
    assert unknown.value.data == {"reason": "not-found", "action": "Open it with session/load."}
