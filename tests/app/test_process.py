"""The process, its workspaces and conversations, and the tools they get."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

from ollm.app.conversation import open_conversation
from ollm.app.storage import Storage
from ollm.app.toolbox import Toolbox, find_session_file, run_tool_call
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import NotFoundError
from ollm.domain.events import AnyEvent, Event, Notice
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.base import Conversation, ConversationOptions
from ollm.runtime.model.choice import READ_TIMEOUT_FACTOR, extend_timeout
from ollm.services.file_discovery.rules import HiddenPaths
from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


def configure_server(place: AppPlace, server: ScriptedServer, **more: object) -> None:
    place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted", **more})


@pytest.mark.parametrize(
    ("said", "served", "window"), [(16_384, 4096, 4096), (8192, 4096, 16_384), (16_384, 20_000, 16_384)]
)
async def test_a_window_that_was_learnt_to_be_smaller_is_used(
    place: AppPlace, said: int, served: int, window: int
) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=16_384) as server:
        configure_server(place, server)
        process = place.process()
        first = await process.model_chooser.choose()
        await first.provider.close()
        process.model_facts.update(first.facts.key, {"served_window": served, "said_window": said}, {})
        model = await place.process().model_chooser.choose()
        await model.provider.close()

    assert (model.window, model.said_window) == (window, 16_384)
    assert ("learnt:" in model.why) is (window == 4096)


async def test_a_window_set_above_the_served_one_is_cut_and_compared_anew_on_demand(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=8192) as server:
        configure_server(place, server, contextWindow=16_384)
        windows = []
        for served, anew in ((8192, False), (16_384, False), (16_384, True), (16_384, False)):
            server.window = served
            model = await place.process().model_chooser.choose(anew=anew)
            await model.provider.close()
            windows.append(model.window)
        place.process().model_facts.update(model.facts.key, {"served_window": 4096, "said_window": 16_384}, {})
        model = await place.process().model_chooser.choose()
        await model.provider.close()

    assert windows == [8192, 8192, 16_384, 16_384]
    assert model.window == 16_384, "what was set wins over what no page of the server says"


async def test_the_form_of_calls_is_as_set_as_learnt_or_as_expected(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", models=("scripted", "qwen2.5-coder:0.5b")) as server:
        configure_server(place, server, callForm="text")
        set_form = (await place.process().model_chooser.choose()).facts
        configure_server(place, server, callForm="native")
        native = (await place.process().model_chooser.choose()).facts
        configure_server(place, server)
        process = place.process()
        expected = (await process.model_chooser.choose("qwen2.5-coder:0.5b")).facts
        process.model_facts.update(expected.key, {"call_form": "native"}, {})
        learnt = (await place.process().model_chooser.choose("qwen2.5-coder:0.5b")).facts

    assert (set_form.call_form, set_form.result_form) == ("text", "user")
    assert (native.call_form, native.result_form) == ("native", "tool")
    assert expected.call_form == "blocks"
    assert learnt.call_form == "native"


async def test_a_model_that_reads_slowly_gets_the_time_for_a_full_window(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=16_384) as server:
        configure_server(place, server)
        process = place.process()
        model = await process.model_chooser.choose()
        given: list[float] = []
        model.provider.allow = given.append  # type: ignore[method-assign]
        facts = msgspec.structs.replace(model.facts, prefill_per_second=10.0)
        usual, unknown = process.settings.provider, msgspec.structs.replace(facts, prefill_per_second=None)
        extend_timeout(model.provider, 1000, facts, usual)
        extend_timeout(model.provider, 1000, unknown, usual)
        assert given == [READ_TIMEOUT_FACTOR * 100] == [200.0]
        configure_server(place, server, timeouts={"firstToken": 7})
        extend_timeout(model.provider, 1000, facts, place.process().settings.provider)
        assert len(given) == 1
        await model.provider.close()


def test_rules_of_every_directory_on_the_way_count(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".ollmignore").write_text("*.key\nprivate/\n")
    (tmp_path / "a" / ".ollmignore").write_text("!open.key\nnotes\n")
    hidden = HiddenPaths(str(tmp_path)).is_hidden

    paths = (
        "x.key",
        "a/x.key",
        "a/open.key",
        "private/x",
        "a/b/notes",
        "notes",
        f"{tmp_path}/x.key",
        "../x.key",
        "a\0",
    )
    assert [path for path in paths if hidden(path)] == [
        "x.key",
        "a/x.key",
        "private/x",
        "a/b/notes",
        f"{tmp_path}/x.key",
    ]


def test_the_settings_of_a_workspace_count_once_it_is_trusted(place: AppPlace) -> None:
    place.configure(hooks={"before-turn": ["mine"]})
    place.configure_workspace(modes={"default": "plan"}, hooks={"before-turn": ["theirs"]})
    assert not place.process().trusted
    assert place.process().settings.modes.default == "code"
    place.trust()
    process = place.process()

    assert process.trusted
    assert process.settings.modes.default == "plan"
    assert process.own_settings.modes.default == "code"
    assert process.own_settings.hooks == {"before-turn": ("mine",)} or process.own_settings.hooks == {
        "before-turn": ["mine"]
    }
    assert not place.process(workspace=False).trusted


def test_a_data_file_that_a_server_names_is_not_taken_for_a_program(place: AppPlace) -> None:
    for name in ("graph.jsonl", "shop.db", "serve.py"):
        (place.workspace / name).write_text("")
    servers = {
        "memory": {
            "command": "node",
            "args": ["serve.py"],
            "env": {"MEMORY_FILE_PATH": f"{place.workspace}/graph.jsonl"},
        },
        "shop": {"command": "sqlite-server", "args": ["--db-path", "./shop.db"]},
    }
    place.configure(mcpServers=servers)

    assert place.scope().boundary.places.executed == {place.workspace / "serve.py"}


def test_trust_is_asked_for_and_given(place: AppPlace) -> None:
    scope = place.scope()
    assert (
        scope.trust_workspace(False)
        == f"{place.workspace} is not trusted.\n\nIt has no settings, hooks or instructions of its own."
    )
    (place.workspace / "AGENTS.md").write_text("Be kind.")
    assert (
        scope.trust_workspace(False)
        == f"{place.workspace} is not trusted.\n\n- `AGENTS.md`\n\nTrust them with /trust yes."
    )
    assert not place.process().trusted
    said = scope.trust_workspace(True)
    assert said == f"{place.workspace} is trusted, starting with the next conversation.\n\n- `AGENTS.md`"
    assert scope.trust_workspace(False) == f"{place.workspace} is trusted (since just now)."
    (place.workspace / ".mcp.json").write_text("{}")
    assert (
        scope.trust_workspace(False)
        == f"{place.workspace} is not trusted.\n\n- `.mcp.json`\n\nTrust them with /trust yes."
    )


async def test_files_are_found_with_the_users_own_ignore_rules(place: AppPlace) -> None:
    config = place.root / "config"
    (config / "git").mkdir(parents=True)
    (config / "git" / "ignore").write_text("*.log\n")
    for name in ("a.log", "b.txt"):
        (place.workspace / name).write_text("x")
    from ollm.domain.files import DiscoveryOptions

    scope = place.scope(XDG_CONFIG_HOME=str(config))
    found = await scope.discovery.find_paths(DiscoveryOptions(root=str(place.workspace)))
    scope.close()

    assert [Path(path).name for path in found.paths] == ["b.txt"]


def open_storage(place: AppPlace, **options: Any) -> Storage:
    return Storage(place.scope(), ConversationOptions(workspace=place.workspace, **options))


def test_a_problem_is_a_notice_now_and_when_the_conversation_opens(place: AppPlace) -> None:
    storage = open_storage(place)
    heard: list[AnyEvent] = []
    storage.stream.add_listener(heard.append)
    storage.scope.report("the disk is slow")
    storage.entries.add_context("", "", priority=50, source="hook")

    assert storage.notices == ["the disk is slow"]
    assert isinstance(heard[0], Notice)
    assert (heard[0].level, heard[0].text) == ("warning", "the disk is slow")
    assert all(isinstance(event, Notice) and event.level == "warning" for event in heard)
    assert len(heard) == 2


def options(place: AppPlace, **more: Any) -> ConversationOptions:
    return ConversationOptions(workspace=place.workspace, home=place.home, interactive=True, **more)


def use(place: AppPlace, server: ScriptedServer, **more: Any) -> None:
    place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted"}, **more)


async def say(conversation: Conversation, text: str) -> str:
    from ollm.domain.events import TextDelta

    said = ""
    async with conversation.turn(text) as events:
        async for event in events:
            said += event.text if isinstance(event, TextDelta) else ""
    return said


async def test_the_newest_session_is_gone_on_with_unless_it_is_archived_or_was_asked_once(place: AppPlace) -> None:
    async with ScriptedServer(["One.", "Two."]) as server:
        use(place, server)
        async with open_conversation(options(place, newest=True)) as conversation:
            assert (await conversation.status()).notices[0] == "No session in this workspace yet; starting a new one."
            await say(conversation, "first")
            chat = conversation.session_id
        async with open_conversation(
            ConversationOptions(workspace=place.workspace, home=place.home, one_shot=True)
        ) as conversation:
            await say(conversation, "once")
            once = conversation.session_id
        scripted = ConversationOptions(workspace=place.workspace, home=place.home, newest=True)
        async with open_conversation(scripted) as conversation:
            assert conversation.session_id == once
        async with open_conversation(options(place, newest=True)) as conversation:
            assert conversation.session_id == chat
        place.process().library.archive(chat or "", True)
        async with open_conversation(options(place, newest=True)) as conversation:
            assert conversation.session_id == once


async def test_a_small_window_is_said(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=1024) as server:
        use(place, server)
        async with open_conversation(options(place)) as conversation:
            assert any(
                "A context window of 1024 tokens is too small" in notice
                for notice in (await conversation.status()).notices
            )


async def test_a_conversation_that_is_not_recorded_leaves_nothing(place: AppPlace) -> None:
    async with ScriptedServer(["One."]) as server:
        use(place, server)
        async with open_conversation(options(place, record=False)) as conversation:
            await say(conversation, "secret words")
            session = conversation.session_id
            assert session
    assert place.process().session_files.places.has(session) is False


async def test_a_mode_is_proposed_only_where_somebody_answers(place: AppPlace) -> None:
    async with ScriptedServer([]) as server:
        use(place, server, modes={"autoSwitch": "propose"})
        async with open_conversation(options(place)) as conversation:
            assert conversation.parts.state.auto_switch == "propose"
        alone = ConversationOptions(workspace=place.workspace, home=place.home, one_shot=True)
        async with open_conversation(alone) as conversation:
            assert conversation.parts.state.auto_switch == "off"


def test_nothing_of_this_is_imported_where_nothing_is_configured(tmp_path: Path) -> None:
    import subprocess

    code = dedent("""
        import asyncio, sys
        from pathlib import Path
        from ollm.app.toolbox import create_tool_registry
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
async def toolbox(place: AppPlace, **options: Any) -> AsyncIterator[Toolbox]:
    async with AsyncExitStack() as stack:
        storage = Storage(place.scope(), ConversationOptions(workspace=place.workspace, **options))
        stack.callback(storage.scope.close)
        yield Toolbox(storage, stack)


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
        model = await storage.process.model_chooser.choose()
        session = await storage.session.create(model)
        await model.provider.close()
        assert find_session_file(storage) == str(place.home / "elsewhere" / f"{session}.json")
        await storage.session.close()


async def run(place: AppPlace, name: str, **arguments: Any) -> tuple[ToolCallRecord, list[Event]]:
    events: list[Event] = []
    options = ConversationOptions(workspace=place.workspace, one_shot=True)
    record = await run_tool_call(options, ToolCall(id="c1", name=name, arguments=arguments), events.append)
    return record, events


async def test_a_tool_of_a_server_that_cannot_be_started_is_not_found(
    place: AppPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.setenv("HOME", str(place.root))
    place.configure(mcpServers={"gone": {"command": "no-such-program-here"}})
    with pytest.raises(NotFoundError, match=r"Cannot run gone__x\. The MCP server gone cannot be started"):
        await run(place, "gone__x")
    record, _ = await run(place, "other__x")
    assert record.status == "failed"
