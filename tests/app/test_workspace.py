"""The scope of a workspace and of a conversation's storage."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import ConversationScope
from ollm.app.storage import Storage
from ollm.app.workspace import WorkspaceScope, build_rule_set
from ollm.domain.errors import OllmError
from ollm.domain.events import AnyEvent, Notice
from ollm.domain.tools import PolicyRequest
from ollm.runtime.base import ConversationOptions
from tests.app.places import AppPlace


def decide(place: AppPlace, command: str, *grants: str) -> str:
    return place.scope().create_policy(grants).evaluate(PolicyRequest("shell", {"command": command})).decision


def test_rules_come_from_the_settings_with_where_they_stand(place: AppPlace) -> None:
    condition = {"param": "command", "operator": "program", "value": "make"}
    place.configure(policy={"rules": [{"tool": "shell", "action": "allow", "conditions": [condition]}]})
    rules = build_rule_set(place.process().loaded_settings)

    assert [(rule.tool, rule.action, rule.reference.layer) for rule in rules.rules] == [
        ("shell", "allow", "configured")
    ]
    assert rules.rules[0].reference.file == str(place.home / "config.yaml")
    assert rules.builtin
    assert not build_rule_set(place.process().loaded_settings, builtin=False).builtin
    assert decide(place, "make") == "allow"
    assert decide(place, "make; touch x") == "ask"


def test_grants_of_this_run_allow(place: AppPlace) -> None:
    assert decide(place, "npm run test") == "ask"
    assert decide(place, "npm run test", "shell:npm run test") == "allow"


def test_the_level_of_approval_is_that_of_the_settings(place: AppPlace) -> None:
    place.configure(policy={"approval": "read-only"})

    assert place.scope().create_policy().approval == "read-only"


def test_a_file_of_rules_stands_in_place_of_all_others(place: AppPlace) -> None:
    place.configure(policy={"approval": "yolo"})
    file = place.root / "rules.yaml"
    file.write_text(json.dumps({"policy": {"defaultAction": "deny", "rules": [{"tool": "ls", "action": "allow"}]}}))
    engine = place.scope().create_policy_from_file(file)

    assert engine.evaluate(PolicyRequest("ls", {"path": "."})).decision == "allow"
    assert engine.evaluate(PolicyRequest("grep", {"pattern": "x"})).decision == "deny"
    assert not engine.rules.builtin
    assert place.scope().create_policy_from_file(file, builtin=True).rules.builtin
    assert engine.approval != "yolo"
    with pytest.raises(OllmError):
        place.scope().create_policy_from_file(place.root / "nothing.yaml")


def test_the_boundary_is_the_workspace_and_what_the_settings_allow(place: AppPlace) -> None:
    assert place.scope().boundary.workspace == place.workspace
    other = place.root / "other"
    other.mkdir()
    place.configure(tools={"allowedRoots": [str(other)]})
    assert other in place.scope().boundary.places.roots


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


def test_commands_of_the_workspace_come_first_once_it_is_trusted(place: AppPlace) -> None:
    ours, theirs = place.home / "commands", place.workspace / ".ollm" / "commands"
    assert open_storage(place).command_directories == (ours,)
    place.trust()
    assert open_storage(place).command_directories == (theirs, ours)


def scope(place: AppPlace, **more: object) -> ConversationScope:
    from contextlib import AsyncExitStack

    options = ConversationOptions(workspace=place.workspace, **more)  # type: ignore[arg-type]
    return ConversationScope(WorkspaceScope(place.process(), place.workspace), options, AsyncExitStack())
