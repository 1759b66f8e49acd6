"""`ollm config`, run as a person runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.covers import covers

WRONG = """\
services:
  loopDetection:
    maxTurn: 5
policy:
  rules:
    - {tool: shell, action: alow}
"""


def write(home: Path, text: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(text, encoding="utf-8")
    return home


@covers("S8.9", "H525", "H753")
def test_show_prints_what_is_in_force_and_where_it_was_set(tmp_path: Path) -> None:
    home = write(tmp_path / "home", "loopDetection:\n  maxTurns: 80\n")

    done = ollm("config", "show", home=home, cwd=tmp_path, OLLM_MODEL="qwen")

    assert done.returncode == 0
    assert "  maxTurns: 80  # config.yaml:2:3\n" in done.stdout
    assert "  model: qwen  # OLLM_MODEL\n" in done.stdout
    assert "  repeatThreshold: 3\n" in done.stdout


@covers("S10.7")
def test_show_hides_every_secret(tmp_path: Path) -> None:
    text = (
        "provider: {apiKey: sk-1, apiKeyEnv: MY_KEY, baseUrl: 'http://u:hunter2@gpu:1'}\n"
        "mcpServers: {a: {command: c, env: {GH: ghp_2}, headers: {X: tok3}, token: tok4}}\n"
    )
    home = write(tmp_path / "home", text)

    for arguments in (["config", "show"], ["config", "show", "--json"]):
        shown = ollm(*arguments, home=home, cwd=tmp_path).stdout
        assert not [secret for secret in ("sk-1", "hunter2", "ghp_2", "tok3", "tok4") if secret in shown]
        assert "********" in shown
        assert "MY_KEY" in shown


def test_what_show_prints_is_a_configuration_again(tmp_path: Path) -> None:
    shown = ollm("config", "show", home=tmp_path / "one", cwd=tmp_path).stdout

    done = ollm("config", "check", home=write(tmp_path / "two", shown), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "Configuration OK.\n")


def test_check_lists_every_mistake_and_exits_2(tmp_path: Path) -> None:
    done = ollm("config", "check", home=write(tmp_path / "home", WRONG), cwd=tmp_path)

    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "config.yaml:3:5 loopDetection.maxTurn: unknown key, did you mean loopDetection.maxTurns?",
        "config.yaml:6:7 policy.rules: Rule 1 is invalid (action must be one of allow, ask, deny), so shell asks.",
    ]
    found = json.loads(ollm("config", "check", "--json", home=tmp_path / "home", cwd=tmp_path).stdout)
    assert found["ok"] is False
    assert (found["problems"][0]["line"], found["problems"][0]["key"]) == (3, "loopDetection.maxTurn")


@pytest.mark.parametrize("broken", ["a: [", "provider: {type: x}"])
def test_a_broken_file_stops_neither_check_nor_help_nor_path(tmp_path: Path, broken: str) -> None:
    home = write(tmp_path / "home", broken)

    done = ollm("config", "check", home=home, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.startswith("config.yaml")
    assert ollm("--help", home=home).returncode == 0
    assert ollm("config", "--help", home=home).returncode == 0
    assert ollm("config", "path", home=home).stdout == f"{home / 'config.yaml'}\n"


def test_check_looks_into_the_workspaces_file_too(tmp_path: Path) -> None:
    write(tmp_path / ".ollm", "policy: {approval: yolo}\n")

    done = ollm("config", "check", "--workspace", str(tmp_path), home=tmp_path / "home")

    assert done.returncode == 2
    assert done.stdout.startswith(".ollm/config.yaml:1:10 policy.approval: ")


def test_set_changes_the_file_and_a_mistake_exits_2(tmp_path: Path) -> None:
    home = write(tmp_path / "home", "# mine\n")

    assert ollm("config", "set", "loopDetection.maxTurns", "80", home=home).returncode == 0
    wrong = ollm("config", "set", "loopDetection.maxTurns", "many", home=home)

    assert wrong.returncode == 2
    assert "expected a whole number" in wrong.stderr
    assert (home / "config.yaml").read_text(encoding="utf-8") == "# mine\nloopDetection:\n  maxTurns: 80\n"


def test_set_says_when_a_variable_counts_instead(tmp_path: Path) -> None:
    place, key = tmp_path / "home", ("config", "set", "provider.model")

    assert "OLLM_MODEL is set in the environment" in ollm(*key, "qwen3:8b", home=place, OLLM_MODEL="other").stderr
    assert "environment" not in ollm(*key, "qwen3:8b", home=place, OLLM_MODEL="").stderr


def test_the_schema_knows_every_key_and_refuses_others(tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator

    schema = json.loads(ollm("config", "schema", home=tmp_path).stdout)
    validator = Draft202012Validator(schema)

    assert validator.is_valid({"services": {"session": {"maxSessions": 3}}, "loopDetection": {"maxTurns": 3}})
    assert not validator.is_valid({"loopDetection": {"maxTurn": 3}})
    assert not validator.is_valid({"compression": {"threshold": 2}})


@covers("S10.6", "D615")
def test_another_command_goes_on_and_says_each_mistake_once_on_stderr_and_in_the_log(tmp_path: Path) -> None:
    home = write(tmp_path / "home", "loopDetection: {maxTurn: 5}\n")

    done = ollm("env", "check", "--json", home=home, cwd=tmp_path)

    said = "config.yaml:1:17 loopDetection.maxTurn: unknown key, did you mean loopDetection.maxTurns?"
    assert done.returncode == 0
    assert done.stderr == f"ollm: {said}\n"
    lines = [json.loads(line) for line in (home / "logs" / "ollm.log").read_text(encoding="utf-8").splitlines()]
    assert [(line["level"], line["service"], line["message"]) for line in lines] == [("WARN", "config", said)]


@pytest.mark.parametrize("broken", ["provider: {type: olama}", "a: ["])
def test_another_command_ends_with_2_when_going_on_would_surprise(tmp_path: Path, broken: str) -> None:
    done = ollm("env", "check", home=write(tmp_path / "home", broken), cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("ollm: config.yaml:1:")
    assert "ollm config check" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_prints_the_log_to_stderr_and_leaves_stdout_alone(tmp_path: Path) -> None:
    home = write(tmp_path / "home", "loopDetection: {maxTurn: 5}\n")

    plain = ollm("env", "check", "--json", home=home, cwd=tmp_path)
    debug = ollm("env", "check", "--json", "--debug", home=home, cwd=tmp_path)

    assert debug.stdout == plain.stdout
    assert "warning config.load: config.yaml:1:17" in debug.stderr


def test_a_wrong_key_that_is_in_the_file_can_be_removed(tmp_path: Path) -> None:
    home = write(tmp_path / "home", "model: x\nscreen:\n  theme: dark\n  thme: light\n")

    for key in ("model", "screen.thme"):
        assert ollm("config", "unset", key, home=home, cwd=tmp_path).returncode == 0
    assert (home / "config.yaml").read_text() == "screen:\n  theme: dark\n"
    again = ollm("config", "unset", "model", home=home, cwd=tmp_path)
    assert again.returncode == 2
    assert "did you mean provider.model?" in again.stderr


def test_a_log_level_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    done = ollm("config", "check", home=tmp_path / "home", cwd=tmp_path, OLLM_LOG_LEVEL="loud")

    assert "OLLM_LOG_LEVEL expected DEBUG, INFO, WARN or ERROR" in done.stdout + done.stderr
    assert ollm("config", "check", home=tmp_path / "home", cwd=tmp_path, OLLM_LOG_LEVEL="warn").returncode == 0


def test_a_negative_value_is_a_value(tmp_path: Path) -> None:
    done = ollm("config", "set", "loopDetection.maxTurns", "-5", home=tmp_path / "home", cwd=tmp_path)

    assert (done.returncode, "not -5" in done.stderr) == (2, True)


@pytest.mark.parametrize("url", ["http://gpu:99999", "http://gpu:port", "http://[::1"])
def test_an_address_that_cannot_be_is_reported_with_its_variable(tmp_path: Path, url: str) -> None:
    done = ollm("-p", "hello", home=tmp_path / "home", cwd=tmp_path, OLLM_BASE_URL=url)

    assert (done.returncode, done.stderr.startswith("ollm: OLLM_BASE_URL provider.baseUrl: ")) == (2, True)
