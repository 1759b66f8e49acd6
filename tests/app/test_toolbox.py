"""What the calls of one conversation take."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from ollm.app import WorkspaceScope
from ollm.app.storage import Storage
from ollm.app.toolbox import Toolbox, find_session_file
from ollm.runtime.base import ConversationOptions
from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


def test_nothing_of_this_is_imported_where_nothing_is_configured(tmp_path: Path) -> None:
    import subprocess

    code = dedent("""
        import asyncio, sys
        from pathlib import Path
        from ollm.app import create_tool_registry
        create_tool_registry(Path.cwd())
        wrong = [name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "pydantic", "anyio")
                 or name in ("importlib.metadata", "ollm.extensions.loader", "ollm.extensions.loader",
                             "ollm.extensions.hooks") or name.startswith("ollm.extensions.mcp")]
        print(wrong)
    """)
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={"OLLM_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert done.stdout == "[]\n", done.stderr


@asynccontextmanager
async def toolbox(place: AppPlace, *, attached: bool = True, **options: Any) -> AsyncIterator[Toolbox]:
    async with AsyncExitStack() as stack:
        storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace, **options))
        stack.callback(storage.scope.close)
        yield Toolbox(storage, stack, lambda: attached)


async def test_a_name_that_is_taken_is_not_given_to_an_extension(place: AppPlace) -> None:
    folder = place.home / "extensions" / "mine"
    folder.mkdir(parents=True)
    (folder / "extension.yaml").write_text(
        'name: mine\nversion: "1"\nadds: {tools: {ls: "code:Ls", extra: "code:Extra"}}\n'
    )
    (folder / "code.py").write_text(
        "import msgspec\n"
        "from ollm.tools.framework.base import Tool\n"
        "class Ls(Tool):\n    '''List.'''\n    name = 'ls'\n"
        "class Extra(Tool):\n    '''More.'''\n    name = 'extra'\n"
    )
    place.configure(extensions={"enabled": ["mine"]})
    async with toolbox(place) as box:
        names = [spec.name for spec in box.registry.list()]
        assert box.storage.notices == ["Skipped the extension's tool ls: that name is already taken."]
        assert names.count("ls") == 1


async def test_a_key_for_searching_comes_from_the_environment(place: AppPlace) -> None:
    place.configure(tools={"webSearch": {"apiKeyEnv": "SEARCH_KEY"}})
    scope = WorkspaceScope(place.process(SEARCH_KEY="abc"), place.workspace)
    async with AsyncExitStack() as stack:
        box = Toolbox(Storage(scope, ConversationOptions(workspace=place.workspace)), stack)
        assert box.search.key == "abc"


async def test_without_checkpoints_a_change_in_the_editor_is_made_all_the_same(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("checkpoints: {enabled: false}\n")
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)] = "unsaved\ntwo\n"
        session = await editor.open()
        await editor.say(session, "change it")
        await editor.say(session, "/rewind 1 files yes")

    assert editor.client.buffers[str(file)] == "unsaved\nthree\n"
    assert "Checkpoints are off" in editor.client.said()


async def test_a_hook_is_told_where_the_session_is_recorded(place: AppPlace) -> None:
    async with ScriptedServer([]) as server:
        place.configure(
            provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"},
            sessions={"dataDir": "~/.ollm/elsewhere"},
        )
        storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace))
        assert find_session_file(storage) == ""
        model = await storage.process.choose_model()
        session = await storage.session.create(model)
        await model.provider.close()
        assert find_session_file(storage) == str(place.home / "elsewhere" / f"{session}.json")
        await storage.session.close()
