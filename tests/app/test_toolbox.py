"""What the calls of one conversation take."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from ollm.app import WorkspaceScope
from ollm.app.storage import Storage
from ollm.app.toolbox import Toolbox
from ollm.domain.events import AnyEvent, TodosChanged
from ollm.domain.tools import Todo
from ollm.extensions.base import NoHooks
from ollm.runtime.calls.confirmation import BusAsker, UnattendedAsker
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace


def test_nothing_of_this_is_imported_where_nothing_is_configured(tmp_path: Path) -> None:
    import subprocess

    code = dedent("""
        import asyncio, sys
        from pathlib import Path
        from ollm.app import create_tool_registry
        create_tool_registry(Path.cwd())
        wrong = [name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "pydantic", "anyio")
                 or name in ("importlib.metadata", "ollm.extensions.loader", "ollm.extensions.manifest",
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


async def test_without_settings_there_are_no_hooks_servers_or_extensions(place: AppPlace) -> None:
    async with toolbox(place) as box:
        assert box.hooks is None
        assert box.mcp is None
        assert box.extensions is None
        assert box.search.others == {}
        assert box.search.key is None
        assert box.storage.notices == []


async def test_servers_of_the_settings_are_there_and_mistakes_told(place: AppPlace) -> None:
    place.configure(mcpServers={"one": {"command": "run"}, "bad": 5})
    async with toolbox(place) as box:
        assert box.mcp is not None
        assert [state.server.name for state in box.mcp.list_states()] == ["one"]
        assert box.storage.notices == ["mcpServers.bad: expected a mapping with command or url"]


async def test_the_servers_of_an_untrusted_workspace_are_not_there(place: AppPlace) -> None:
    (place.workspace / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "run"}}}')
    async with toolbox(place) as box:
        assert box.mcp is None
    place.trust()
    async with toolbox(place) as box:
        assert box.mcp is not None


async def test_the_level_of_approval_is_that_of_the_mode_or_of_the_settings(place: AppPlace) -> None:
    place.configure(policy={"approval": "accept-edits"})
    async with toolbox(place, mode="code") as box:
        assert box.policy.approval == "accept-edits"
    async with toolbox(place, mode="plan") as box:
        assert box.policy.approval == "read-only"


async def test_questions_go_to_the_person_or_nowhere(place: AppPlace) -> None:
    async with toolbox(place, interactive=True) as box:
        assert isinstance(box.create_asker(), BusAsker)
    async with toolbox(place, yes=True) as box:
        assert isinstance(box.create_asker(), UnattendedAsker)


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


async def test_todos_are_told(place: AppPlace) -> None:
    async with toolbox(place) as box:
        heard: list[AnyEvent] = []
        box.storage.stream.add_listener(heard.append)
        box.todos_changed((Todo(id="1", text="write", status="open"),))
        assert isinstance(heard[0], TodosChanged)
        assert heard[0].todos[0].text == "write"


async def test_a_key_for_searching_comes_from_the_environment(place: AppPlace) -> None:
    place.configure(tools={"webSearch": {"apiKeyEnv": "SEARCH_KEY"}})
    scope = WorkspaceScope(place.process(SEARCH_KEY="abc"), place.workspace)
    async with AsyncExitStack() as stack:
        box = Toolbox(Storage(scope, ConversationOptions(workspace=place.workspace)), stack)
        assert box.search.key == "abc"


async def test_what_calls_take_is_put_together(place: AppPlace) -> None:
    async with toolbox(place) as box:
        services = box.create_call_services()
        assert services.registry is box.registry
        assert services.policy is box.policy
        assert isinstance(services.hooks, NoHooks)
        assert services.context.boundary is box.scope.boundary
        assert box.pages.get() is box.pages.get()
        assert box.discovery is box.scope.discovery
        assert box.notes is box.storage.notes
        assert box.global_notes is box.process.notes
        assert box.edits is box.edits
        assert box.project_files is box.project_files
