"""The one module that knows the protocol's library: versions, errors, and that no other one does."""

import ast
from pathlib import Path

import pytest
from acp import RequestError
from acp import schema as wire

from ollm.acp.adapter import read_abilities
from tests.acp.editor import editing
from tests.house.test_shape import SOURCE, TREES


def test_no_other_module_imports_the_library() -> None:
    found = {
        path.relative_to(SOURCE)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "acp")
        or (isinstance(node, ast.Import) and any(name.name.split(".")[0] == "acp" for name in node.names))
    }

    assert found == {Path("acp/adapter.py")}


def test_abilities_are_what_the_editor_says() -> None:
    files = wire.FileSystemCapabilities(read_text_file=True, write_text_file=False)
    found = read_abilities(wire.ClientCapabilities(fs=files, field_meta={"terminal_output": True}))

    assert (found.reads_files, found.writes_files, found.shows_terminals) == (True, False, True)
    assert not read_abilities(None).reads_files


@pytest.mark.parametrize("version", [0, 1, 99])
async def test_a_version_is_agreed_on(tmp_path: Path, version: int) -> None:
    async with editing(tmp_path, []) as (editor, _):
        found = await editor.agent.initialize(protocol_version=version)

    assert found.protocol_version == 1
    assert found.agent_info.name == "ollm"
    assert found.agent_capabilities.load_session
    assert await_nothing_secret(found)


def await_nothing_secret(found: wire.InitializeResponse) -> bool:
    return found.auth_methods == []


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
