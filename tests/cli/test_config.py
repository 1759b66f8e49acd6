"""`ollm config`, `ollm env` and `ollm redact`, run as a person runs them."""

import json
import os
import subprocess
import sys
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


def test_a_mistake_is_shown_without_the_controls_that_its_key_holds(tmp_path: Path) -> None:
    wrong = '"sessio\\u001b[31mn": 1\nsessions: {dataDir: "a\\0b"}\n'
    done = ollm("config", "check", home=write(tmp_path / "home", wrong), cwd=tmp_path)

    first, second = done.stdout.splitlines()
    assert first.startswith("config.yaml:1:1 sessio\\x1b[31mn: unknown key")
    assert second == "config.yaml:2:12 sessions.dataDir: expected a text without zero bytes"


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


CORE = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def run_ollm(
    home: Path, *arguments: str, environment: dict[str, str] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ollm", *arguments],
        env={**CORE, "HOME": str(home), **(environment or {})},
        input=given,
        capture_output=True,
        cwd=home,
        check=False,
    )


@covers("S7.7")
def test_env_check_names_what_passes_and_the_rule_for_the_rest(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text(
        "environment: {allowList: [MY_TOKEN], denyPatterns: ['INTERNAL_*']}\n"
    )
    secrets = {"MY_TOKEN": "a", "INTERNAL_HOST": "b", "X_KEY": "sesame-street", "PLAIN": "c"}

    ran = run_ollm(tmp_path, "env", "check", "--json", environment=secrets)

    document = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert {"MY_TOKEN", "PLAIN", "PATH", "HOME"} <= set(document["passed"])
    assert {"name": "INTERNAL_HOST", "rule": "INTERNAL_*"} in document["removed"]
    assert {"name": "X_KEY", "rule": "*_KEY"} in document["removed"]
    shown = run_ollm(tmp_path, "env", environment=secrets).stdout
    assert [line.split() for line in shown.splitlines() if line.startswith(b"PLAIN")] == [[b"PLAIN", b"passed"]]
    assert b"withheld: *_KEY" in shown
    assert b"sesame" not in ran.stdout + ran.stderr + shown


@covers("S10.5")
def test_a_bad_pattern_is_warned_about_and_the_good_ones_stand(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("environment: {denyPatterns: ['[A-', 'GOOD_*']}\n")

    ran = run_ollm(tmp_path, "env", "check", "--json", environment={"GOOD_X": "1", "PLAIN": "1", "Y_KEY": "1"})

    assert {item["name"] for item in json.loads(ran.stdout)["removed"]} == {"GOOD_X", "Y_KEY"}
    assert b"[A-" in ran.stderr


def test_connection_strings_with_a_password_are_kept_back_whatever_their_name(tmp_path: Path) -> None:
    given = {
        "STORE": "Server=db;Database=d;User Id=u;Password=hunter22;",
        "QUEUE": "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=abcdef12345=",
        "FLAGS": "a=1;b=2",
        "HINT": "Server=db;Password=$PASSWORD",
    }

    document = json.loads(run_ollm(tmp_path, "env", "check", "--json", environment=given).stdout)

    assert {"FLAGS", "HINT"} <= set(document["passed"])
    assert not {"STORE", "QUEUE"} & set(document["passed"])


@covers("D629")
def test_an_environment_section_of_the_wrong_shape_leaves_the_core_variables(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("environment: nonsense\n")

    ran = run_ollm(tmp_path, "env", "check", "--json", environment={"PLAIN": "1", "LC_ALL": "C"})

    assert set(json.loads(ran.stdout)["passed"]) <= {"PATH", "HOME", "LANG", "LC_ALL", "SHELL", "TERM", "USER"}
    assert ran.stderr


def test_a_variable_that_the_settings_name_as_a_key_is_kept_back(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("provider: {type: openai, apiKeyEnv: MY_SERVER}\n")

    ran = run_ollm(tmp_path, "env", "check", "--json", environment={"MY_SERVER": "1"})

    assert "MY_SERVER" in [item["name"] for item in json.loads(ran.stdout)["removed"]]


@covers("P28", "S10.7")
def test_an_error_line_holds_no_secret(tmp_path: Path) -> None:
    ran = run_ollm(tmp_path, "redact", "password=hunter2", environment={"X_KEY": "sesame-street"})
    other = run_ollm(tmp_path, "redact", "dir/sesame-street", environment={"X_KEY": "sesame-street"})

    assert b"hunter2" not in ran.stderr
    assert b"sesame" not in other.stderr


CODE_AND_KEYS = {
    "KEY": "key-value-4711",
    "KUBE_CONFIG_DATA": "kube-value-4711",
    "BASH_ENV": "payload.sh",
    "ENV": "payload.sh",
    "BASH_FUNC_ls%%": "() { touch ran; }",
    "PROMPT_COMMAND": "touch ran",
}


def test_a_command_gets_neither_keys_nor_code_for_shells(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "payload.sh").write_text("touch ran\n")
    arguments = ("tools", "run", "shell", "--yes", "--args", json.dumps({"command": "env; ls; sh -c true"}))
    given = {**CORE, "HOME": str(tmp_path), **CODE_AND_KEYS, "PLAIN": "plain-value"}

    ran = subprocess.run(
        [sys.executable, "-m", "ollm", *arguments], env=given, cwd=work, capture_output=True, check=False
    )

    said = ran.stdout.decode()
    assert "PLAIN=plain-value" in said, ran.stderr
    assert not {line.partition("=")[0] for line in said.splitlines()} & CODE_AND_KEYS.keys()
    assert "4711" not in said
    assert not (work / "ran").exists()


def test_a_list_that_lets_everything_pass_keeps_secrets_back(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("environment: {allowList: ['*']}\n")
    arguments = ("tools", "run", "shell", "--yes", "--args", '{"command": "env"}')

    ran = run_ollm(tmp_path, *arguments, environment=CODE_AND_KEYS)

    assert not {line.partition(b"=")[0].decode() for line in ran.stdout.splitlines()} & (
        CODE_AND_KEYS.keys() - {"KEY", "KUBE_CONFIG_DATA"}
    )


@covers("S10.7")
def test_redact_reads_a_file_or_standard_input(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("password=hunter2 and sesame-street\r\nplain\n", newline="")
    environment = {"X_KEY": "sesame-street"}

    from_file = run_ollm(tmp_path, "redact", "log.txt", environment=environment)
    from_input = run_ollm(tmp_path, "redact", environment=environment, given=b"token=abc123 \xff\xfe\n")

    assert from_file.stdout == b"password=[redacted] and [redacted]\r\nplain\n"
    assert from_input.stdout == b"token=[redacted] \xff\xfe\n"


def test_redact_says_what_it_cannot_read(tmp_path: Path) -> None:
    for name in ("missing.txt", "."):
        ran = run_ollm(tmp_path, "redact", name)
        assert ran.returncode == 2
        assert name.encode() in ran.stderr
        assert b"Traceback" not in ran.stderr


def test_secrets_in_odd_places_go_and_what_is_none_stays(tmp_path: Path) -> None:
    signature = "fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024"
    secrets = (
        "https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz012345678/getMe",
        "pul-" + "a1b2c3d4" * 5,
        "ops_eyJzaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSIsInVzZXJBdXRoIjp7Im1",
        f"https://b.s3.amazonaws.com/x?X-Amz-Signature={signature}",
        rf"\nhttps://b.s3.amazonaws.com/x?X-Amz-Signature={signature}\n",
        "7123456789:AAHabcdefghijKLMNOPQRSTuvwxyzABCDEFG",
        "bkua_" + "a1b2c3d4" * 5,
        "\x1b[32mghp_abcdefghijABCDEFGHIJ0123456789abcdef\x1b[0m",
        "  GITHUB_TOKEN: letmein",
    )
    plain = "token_type=bearer expires_in=3600\napi_key=os.environ['API_KEY']\n"

    ran = run_ollm(tmp_path, "redact", given=("\n".join(secrets) + "\n" + plain).encode())

    said = ran.stdout.decode()
    for part in ("AAabcdef", "a1b2c3d4", "eyJzaWdu", signature, "ghp_abc", "letmein", "AAHabc"):
        assert part not in said
    assert said.endswith(plain)
