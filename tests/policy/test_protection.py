"""Paths that stay a question whatever rules, grants and approval levels say."""

from typing import Any

import pytest

from ollm.domain.tools import Access, Location, PolicyRequest
from ollm.policy.engine import find_concern, find_strictest_concern
from ollm.policy.grants import GrantBook
from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.path_table import PATHS

SETTINGS: list[dict[str, Any]] = [{}, {"approval": "yolo"}, {"grants": GrantBook(granted=["write_file", "shell"])}]
ALLOW = [{"tool": "read_file", "action": "allow"}, {"tool": "write_file", "action": "allow"}]


@covers("T3.8")
@pytest.mark.parametrize(("path", "reading", "writing"), PATHS)
def test_paths_by_table(place: Place, path: str, reading: str, writing: str):
    for settings in SETTINGS:
        engine = place.engine(ALLOW, **settings)
        assert engine.evaluate(PolicyRequest(tool="read_file", params={"path": path})).decision == reading
        verdict = engine.evaluate(PolicyRequest(tool="write_file", params={"path": path}))
        assert verdict.decision == writing
        assert verdict.locked == (writing != "allow")


@pytest.mark.parametrize(
    ("path", "reading", "writing"), [row for row in PATHS if row[0] not in ("-rf", ".env ", "~", "~/x")]
)
def test_the_shell_finds_the_same_paths_protected(place: Place, path: str, reading: str, writing: str):
    import shlex

    engine = place.engine([rule("allow", "program", ["cat", "cp", "tee", "touch", "mv", "ln"])], approval="yolo")
    word = shlex.quote(path)

    assert shell(engine, f"cat {word}").decision == reading
    for command in (f"cat a > {word}", f"cp a {word}", f"tee {word}", f"touch {word}", f"mv a {word}", f"ln a {word}"):
        verdict = shell(engine, command)
        assert verdict.decision == ("ask" if writing != "allow" else "allow"), command
        assert verdict.locked == (writing != "allow"), command


def test_files_that_git_settings_name_are_protected_like_the_settings(place: Place) -> None:
    settings = "[include]\n\tpath = ../shared.cfg\n[core]\n\thooksPath = checks\n[diff]\n\texternal = ./show.sh\n"
    (place.workspace / ".git").mkdir(exist_ok=True)
    (place.workspace / ".git/config").write_text(settings)
    (place.workspace / "show.sh").touch()
    engine = place.engine(ALLOW, approval="yolo")

    for path, locked in {"shared.cfg": True, "checks/new": True, "show.sh": True, "other.cfg": False}.items():
        verdict = engine.evaluate(PolicyRequest(tool="write_file", params={"path": path}))
        assert verdict.locked == locked, path
        assert shell(engine, f"echo x > {path}").locked == locked, path


@pytest.mark.parametrize("path", ["~/.ssh/id_rsa", "~/.ollm/config.yaml", "$HOME/.ssh/config", "~/.bashrc", "~"])
def test_home_is_outside_and_its_secrets_are_never_read_unasked(place: Place, path: str):
    engine = place.engine([{"tool": "shell", "action": "allow"}], approval="yolo")

    assert shell(engine, f"cat {path}").locked
    assert shell(engine, f"echo x > {path}").locked


@pytest.mark.parametrize(
    ("target", "access", "decision", "text", "opens"),
    [
        ("https://x.org/../a", "write", None, "", ""),
        ("src/a.py", "read", None, "", ""),
        ("src/*.py", "read", None, "", ""),
        ("*.py", "write", None, "", ""),
        ("/etc/*.conf", "read", "ask", "/etc/*.conf is outside the workspace", "/etc"),
        ("/*/passwd", "read", "ask", "/*/passwd is outside the workspace", "/"),
        ("out/[a-p]*", "read", "ask", "out/[a-p]* is outside the workspace", "/etc"),
        (
            "/etc/passwd",
            "run",
            "deny",
            "/etc/passwd is outside the workspace {workspace}; writing and running there",
            "",
        ),
        (".env", "read", "ask", "reading .env: ", "{workspace}/.env"),
        (".env", "write", "ask", "writing .env: ", "{workspace}/.env"),
        (".env", "run", None, "", ""),
        ("a\0b", "read", "ask", "", ""),
    ],
)
def test_what_is_said_of_a_place(
    place: Place, target: str, access: Access, decision: str | None, text: str, opens: str
) -> None:
    found = find_concern(place.boundary, target, access)

    if decision is None:
        assert found is None
        return
    assert found is not None
    assert found.decision == decision
    assert found.text.startswith(text.format(workspace=place.workspace))
    assert found.resolved == ((opens.format(workspace=place.workspace),) if opens else ())
    assert found.error_type == ("OutsideWorkspace" if decision == "deny" else "Denied")


def test_of_several_places_a_refusal_counts_and_questions_are_asked_together(place: Place) -> None:
    def judge(*targets: tuple[str, Access]) -> tuple[str, str, tuple[str, ...]] | None:
        locations = [Location(target=target, access=access) for target, access in targets]
        found = find_strictest_concern(place.boundary, locations)
        return found and (found.decision, found.text, found.resolved)

    assert judge() is None
    assert judge(("a", "read"), ("b", "write")) is None
    assert judge(("/etc/a", "read"), ("a", "read"), ("/etc/b", "read"), ("/etc/a", "read")) == (
        "ask",
        "/etc/a is outside the workspace; /etc/b is outside the workspace",
        ("/etc/a", "/etc/b"),
    )
    refused = judge(("/etc/a", "read"), ("/etc/b", "write"))
    assert refused is not None
    assert (refused[0], refused[2]) == ("deny", ())
