"""ollm as a library: what is exported, what importing costs, and the snippets of the documents, run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ollm
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

ROOT = Path(__file__).parents[1]

SERVICES = {
    "ChatRecordingService": "create_session record_message record_tool_call save_session get_session list_sessions "
    "delete_session delete_oldest_sessions",
    "ChatCompressionService": "should_compress compress summarize truncate hybrid",
    "LoopDetectionService": "configure record_turn record_tool_call record_output check_for_loop reset",
    "ContextManager": "add_context remove_context clear_context get_context get_system_prompt_additions has_context "
    "get_context_by_source",
    "FileDiscoveryService": "discover discover_all watch_changes load_ignore_patterns should_ignore",
    "EnvironmentSanitizationService": "configure sanitize is_allowed is_denied",
    "SnapshotManager": "create_snapshot restore_snapshot list_snapshots delete_snapshot on_context_threshold "
    "on_before_overflow check_thresholds",
    "ToolRegistry": "register unregister get list get_function_schemas",
    "PolicyEngine": "evaluate",
    "MessageBus": "request respond cancel cancel_all pending",
}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_exported_with_its_methods(name: str) -> None:
    service = getattr(ollm, name)

    assert [method for method in SERVICES[name].split() if not hasattr(service, method)] == []


def test_every_export_leads_somewhere_and_is_seen_by_type_checkers() -> None:
    source = (ROOT / "src" / "ollm" / "__init__.py").read_text()
    for name in ollm.__dir__():
        assert getattr(ollm, name) is not None
        assert name == "__version__" or f"import {name} as {name}\n" in source
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = ollm.Nothing  # type: ignore[attr-defined]


def test_importing_has_no_effect_and_imports_next_to_nothing(tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import ollm; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )

    assert set(eval(done.stdout)) <= {"__future__", "ollm"}
    assert list(tmp_path.iterdir()) == []


def snippets(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


async def run(snippet: str, workspace: Path, server: ScriptedServer) -> str:
    import asyncio

    environment = {
        "HOME": str(workspace),
        "OLLM_HOME": str(workspace / "home"),
        "OLLM_PROVIDER": "openai",
        "OLLM_BASE_URL": server.base_url,
        "OLLM_MODEL": "scripted",
        "PATH": "/usr/bin:/bin",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        snippet,
        cwd=workspace,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


async def test_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    (snippet,) = snippets("README.md")
    async with ScriptedServer([Answer(calls=[("weather", {})]), "Yes, take one."], window=8192) as server:
        said = await run(snippet, tmp_path, server)

    assert said == "Yes, take one."
    assert "weather" in [tool["function"]["name"] for tool in server.chats[0]["tools"]]
    assert server.chats[1]["messages"][-1]["content"] == "It is raining."


async def test_the_library_page_runs_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for snippet in snippets("docs/library.md"):
        async with ScriptedServer(
            [Answer(calls=[("write_file", {"path": "hello.txt", "content": "hi"})]), *["Done."] * 2]
        ) as server:
            await run(snippet, tmp_path, server)


def test_the_documents_show_the_examples_which_are_typed() -> None:
    shown = [*snippets("README.md"), *snippets("docs/library.md")]

    assert shown == [
        (ROOT / "examples" / name).read_text(encoding="utf-8")
        for name in ("one_turn.py", "answering.py", "tickets.py", "services.py", "parts.py")
    ]
    assert '"examples"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.mypy]")[2]


ASKING = """
import asyncio, json
from pathlib import Path
from ollm import *

async def main() -> None:
    price = {"provider.price.prompt": 2.0, "provider.price.completion": 10.0, "provider.price.reused": 0.5}
    options = ConversationOptions(workspace=Path.cwd(), home=Path("elsewhere").absolute(), record=False, flags=price)
    async with open_conversation(options) as conversation:
        first = await conversation.ask("/approval yolo")
        used = [conversation.usage.prompt_tokens, round(conversation.cost, 9)]
        try:
            await conversation.ask("fail")
            reason = ""
        except TurnFailedError as error:
            reason = error.reason
    print(json.dumps([first, used, reason, await ask("once more")]))

asyncio.run(main())
"""


async def test_ask_gives_the_answer_or_raises_and_leaves_no_record_where_none_is_wanted(tmp_path: Path) -> None:
    import json

    refused = Answer(status=400, body={"error": {"message": "no"}})
    async with ScriptedServer(["Hello.", refused, "Again."]) as server:
        said = json.loads(await run(ASKING, tmp_path, server))

    assert said == ["Hello.", [20, 9e-05], "model-error", "Again."]
    assert server.chats[0]["messages"][-1]["content"] == "/approval yolo"
    assert list((tmp_path / "elsewhere" / "sessions").glob("*.json")) == []
    assert len(list((tmp_path / "home" / "sessions").glob("*.json"))) == 1


TWO_IN_ONE_FOLDER = """
import asyncio
from pathlib import Path
from ollm import *

async def talk(**more: bool) -> str:
    async with open_conversation(ConversationOptions(workspace=Path.cwd(), **more)) as conversation:
        return await conversation.ask("hello")

async def main() -> None:
    async with open_conversation(ConversationOptions(workspace=Path.cwd())):
        for more in ({}, {"force": True}):
            try:
                await talk(**more)
            except OllmError as error:
                print(type(error).__name__, error.action)
        print(await talk(beside=True))
    print(await talk())

asyncio.run(main())
"""


async def test_a_folder_that_a_program_has_open_is_one_clear_exception(tmp_path: Path) -> None:
    async with ScriptedServer(["Beside.", "Alone."]) as server:
        said = await run(TWO_IN_ONE_FOLDER, tmp_path, server)

    assert said.splitlines() == [
        "WorkspaceBusyError Close it there, or pass beside=True to open beside it, or force=True to take over.",
        "BusyError It cannot be asked to close: close it there, or open beside it.",
        "Beside.",
        "Alone.",
    ]


PAGE = Path(__file__).parents[1] / "docs" / "sessions.md"


def test_the_example_for_use_as_a_library_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "title='Hello'" in done.stdout
