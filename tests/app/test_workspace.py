"""What all conversations in one workspace share."""

import json
from pathlib import Path

import pytest

from ollm.app.workspace import build_rule_set
from ollm.domain.errors import OllmError
from ollm.domain.tools import PolicyRequest
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
    assert not place.scope().create_policy().trusted
    place.trust()
    assert place.scope().create_policy().trusted


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


def test_files_that_hooks_and_servers_name_are_known_to_be_run(place: AppPlace) -> None:
    (place.workspace / "check.sh").write_text("exit 0")
    assert place.scope()._find_executed_files() == []
    place.configure(hooks={"before-tool": ["sh check.sh"]})
    assert place.scope()._find_executed_files() == [place.workspace / "check.sh"]
    place.configure(mcpServers={"s": {"command": "./check.sh"}})
    assert place.scope()._find_executed_files() == [place.workspace / "check.sh"]


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


def test_memory_is_kept_in_the_workspace(place: AppPlace) -> None:
    scope = place.scope()
    scope.notes.set("k", "v")
    scope.close()

    again = place.scope()
    assert again.notes.get("k") == "v"
    assert (again.memory_directory / "memory.db").exists()
    again.close()


def test_a_memory_of_a_newer_version_is_left_alone(place: AppPlace) -> None:
    import sqlite3

    scope = place.scope()
    scope.notes.set("k", "v")
    own = scope.memory_directory
    scope.close()
    with sqlite3.connect(own / "memory.db") as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    said: list[str] = []
    newer = place.scope()
    newer.report = said.append

    assert newer.memory_directory != own
    assert newer.memory_directory.is_relative_to(place.home)
    assert said == [
        f"{own / 'memory.db'} was written by a newer ollm and is left alone; this run uses {newer.memory_directory}."
    ]
    assert newer.notes.get("k") is None
    newer.close()


def test_what_nobody_listens_to_is_no_error(place: AppPlace) -> None:
    place.scope().report("a problem")


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
    (place.workspace / "CLAUDE.md").write_text("New.")
    assert (
        scope.trust_workspace(False)
        == f"{place.workspace} is not trusted.\n\n- `CLAUDE.md`\n\nTrust them with /trust yes."
    )


def test_the_sandbox_is_as_the_settings_say(place: AppPlace) -> None:
    place.configure(sandbox={"mode": "off"})

    assert "off" in place.scope().create_sandbox().description


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
