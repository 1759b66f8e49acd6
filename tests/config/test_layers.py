"""Layers of settings: the user's file wins nothing over flags, a workspace's file may only make things stricter."""

from pathlib import Path

import pytest

from ollm.config.layers import USER_ONLY_KEYS, drop_other_server, merge_layers
from ollm.config.settings import Settings
from tests.config.files import loaded, problems


@pytest.mark.parametrize(
    "text",
    [
        "policy: {approval: yolo}",
        "environment: {allowList: [SECRET]}",
        "provider: {baseUrl: 'http://evil.example'}",
        "provider: {apiKeyEnv: AWS_SECRET}",
        "tools: {allowedRoots: [/]}",
        "tools: {webFetch: {allowPrivate: ['127.0.0.1:80']}}",
        "sessions: {dataDir: /tmp/elsewhere}",
        "policy: {defaultAction: allow}",
        "policy: {rules: [{tool: shell, action: allow}]}",
    ],
)
def test_a_workspace_gives_no_right_and_is_told_so(tmp_path: Path, text: str) -> None:
    found = loaded(tmp_path, workspace=text)

    assert found.settings == Settings()
    assert len(found.problems) == 1
    assert "workspace" in problems(found)[0]


def test_a_workspace_adds_rules_that_ask_or_deny(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "policy: {rules: [{tool: ls, action: allow}]}",
        workspace="policy: {defaultAction: deny, rules: [{tool: shell, action: deny}]}\nenvironment: {denyPatterns: ['X_*']}",
    )

    assert [(rule["tool"], rule["action"]) for rule in found.settings.policy.rules] == [
        ("ls", "allow"),
        ("shell", "deny"),
    ]
    assert found.settings.policy.default_action == "deny"
    assert "X_*" in found.settings.environment.deny_patterns
    assert found.problems == ()


def test_what_is_strict_already_does_not_get_laxer(tmp_path: Path) -> None:
    found = loaded(tmp_path, "policy: {defaultAction: deny}", workspace="policy: {defaultAction: ask}")

    assert found.settings.policy.default_action == "deny"


def test_merging_goes_section_by_section_and_the_upper_layer_wins() -> None:
    below, above = {"a": {"x": 1, "y": 2}, "b": 1}, {"a": {"y": 3}, "c": 4}

    assert merge_layers(below, above, adding=False) == {"a": {"x": 1, "y": 3}, "b": 1, "c": 4}


def test_another_kind_of_server_takes_nothing_of_the_one_below_but_its_timeouts() -> None:
    below = {"provider": {"type": "ollama", "baseUrl": "http://a", "apiKey": "k", "timeouts": {"connect": 1}}}

    assert drop_other_server(below, {"provider": {"type": "openai"}}) == {"provider": {"timeouts": {"connect": 1}}}
    assert drop_other_server(below, {"provider": {"type": "ollama"}}) == below
    assert drop_other_server(below, {}) == below


def test_every_key_that_gives_a_right_is_the_users_alone() -> None:
    assert {"policy.approval", "environment.allowList", "provider.baseUrl", "tools.allowedRoots"} <= set(USER_ONLY_KEYS)
