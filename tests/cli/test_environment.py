"""`ollm env`: which variables tools get; `ollm redact`; and what else keeps secrets back."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.covers import covers

CORE = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def ollm(
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

    ran = ollm(tmp_path, "env", "check", "--json", environment=secrets)

    document = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert {"MY_TOKEN", "PLAIN", "PATH", "HOME"} <= set(document["passed"])
    assert {"name": "INTERNAL_HOST", "rule": "INTERNAL_*"} in document["removed"]
    assert {"name": "X_KEY", "rule": "*_KEY"} in document["removed"]
    shown = ollm(tmp_path, "env", environment=secrets).stdout
    assert [line.split() for line in shown.splitlines() if line.startswith(b"PLAIN")] == [[b"PLAIN", b"passed"]]
    assert b"withheld: *_KEY" in shown
    assert b"sesame" not in ran.stdout + ran.stderr + shown


@covers("S10.5")
def test_a_bad_pattern_is_warned_about_and_the_good_ones_stand(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("environment: {denyPatterns: ['[A-', 'GOOD_*']}\n")

    ran = ollm(tmp_path, "env", "check", "--json", environment={"GOOD_X": "1", "PLAIN": "1", "Y_KEY": "1"})

    assert {item["name"] for item in json.loads(ran.stdout)["removed"]} == {"GOOD_X", "Y_KEY"}
    assert b"[A-" in ran.stderr


def test_connection_strings_with_a_password_are_kept_back_whatever_their_name(tmp_path: Path) -> None:
    given = {
        "STORE": "Server=db;Database=d;User Id=u;Password=hunter22;",
        "QUEUE": "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=abcdef12345=",
        "FLAGS": "a=1;b=2",
        "HINT": "Server=db;Password=$PASSWORD",
    }

    document = json.loads(ollm(tmp_path, "env", "check", "--json", environment=given).stdout)

    assert {"FLAGS", "HINT"} <= set(document["passed"])
    assert not {"STORE", "QUEUE"} & set(document["passed"])


@covers("D629")
def test_an_environment_section_of_the_wrong_shape_leaves_the_core_variables(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("environment: nonsense\n")

    ran = ollm(tmp_path, "env", "check", "--json", environment={"PLAIN": "1", "LC_ALL": "C"})

    assert set(json.loads(ran.stdout)["passed"]) <= {"PATH", "HOME", "LANG", "LC_ALL", "SHELL", "TERM", "USER"}
    assert ran.stderr


def test_a_variable_that_the_settings_name_as_a_key_is_kept_back(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("provider: {type: openai, apiKeyEnv: MY_SERVER}\n")

    ran = ollm(tmp_path, "env", "check", "--json", environment={"MY_SERVER": "1"})

    assert "MY_SERVER" in [item["name"] for item in json.loads(ran.stdout)["removed"]]


@covers("P28", "S10.7")
def test_an_error_line_holds_no_secret(tmp_path: Path) -> None:
    ran = ollm(tmp_path, "redact", "password=hunter2", environment={"X_KEY": "sesame-street"})
    other = ollm(tmp_path, "redact", "dir/sesame-street", environment={"X_KEY": "sesame-street"})

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


def test_a_list_that_lets_everything_pass_is_told(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("environment: {allowList: ['*']}\n")
    arguments = ("tools", "run", "shell", "--yes", "--args", '{"command": "env"}')

    ran = ollm(tmp_path, *arguments, environment=CODE_AND_KEYS)

    assert b"'*'" in ran.stderr
    assert b"API_KEY" in ran.stderr
    assert not {line.partition(b"=")[0].decode() for line in ran.stdout.splitlines()} & (
        CODE_AND_KEYS.keys() - {"KEY", "KUBE_CONFIG_DATA"}
    )


@covers("S10.7")
def test_redact_reads_a_file_or_standard_input(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("password=hunter2 and sesame-street\r\nplain\n", newline="")
    environment = {"X_KEY": "sesame-street"}

    from_file = ollm(tmp_path, "redact", "log.txt", environment=environment)
    from_input = ollm(tmp_path, "redact", environment=environment, given=b"token=abc123 \xff\xfe\n")

    assert from_file.stdout == b"password=[redacted] and [redacted]\r\nplain\n"
    assert from_input.stdout == b"token=[redacted] \xff\xfe\n"


def test_redact_says_what_it_cannot_read(tmp_path: Path) -> None:
    for name in ("missing.txt", "."):
        ran = ollm(tmp_path, "redact", name)
        assert ran.returncode == 1
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

    ran = ollm(tmp_path, "redact", given=("\n".join(secrets) + "\n" + plain).encode())

    said = ran.stdout.decode()
    for part in ("AAabcdef", "a1b2c3d4", "eyJzaWdu", signature, "ghp_abc", "letmein", "AAHabc"):
        assert part not in said
    assert said.endswith(plain)
