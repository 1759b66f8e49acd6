"""The scope of a workspace and of a conversation's storage."""

from pathlib import Path
from typing import Any

from ollm.app.storage import Storage
from ollm.domain.events import AnyEvent, Notice
from ollm.runtime.base import ConversationOptions
from tests.app.places import AppPlace


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

    assert place.scope()._find_executed_files() == [place.workspace / "serve.py"]


def test_trust_is_asked_for_and_given(place: AppPlace) -> None:
    scope = place.scope()
    assert scope.trust_workspace(False) == f"{place.workspace} is not trusted.\n\nIt has no files that need it."
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
