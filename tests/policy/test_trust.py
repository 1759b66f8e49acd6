"""Protected files, and trust in workspaces."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import NotFoundError, StorageError
from ollm.domain.tools import PolicyRequest
from ollm.policy import trust
from ollm.policy.grants import GrantBook
from ollm.policy.shell.verdict import ShellJudge
from ollm.policy.trust import TrustBook, find_named_files
from tests.covers import covers
from tests.policy.conftest import Place, judge, rule, shell
from tests.policy.path_table import PATHS


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    (directory / ".ollm/commands").mkdir(parents=True)
    (directory / ".ollm/config.yaml").write_text("policy: {}\n")
    (directory / "AGENTS.md").write_text("Be kind.\n")
    (directory / "main.py").write_text("print()\n")
    return directory


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    return TrustBook(tmp_path / "home/trust.json")


def test_an_unknown_workspace_is_not_trusted_and_its_files_are_named(book: TrustBook, workspace: Path, tmp_path: Path):
    state = book.get_state(workspace)

    assert (state.trusted, state.known) == (False, False)
    assert state.files == (".ollm/config.yaml", "AGENTS.md")
    assert not (tmp_path / "home").exists()


def test_trust_lasts_while_the_files_stay_what_they_were(book: TrustBook, workspace: Path):
    assert book.trust(workspace).trusted

    (workspace / "main.py").write_text("other\n")
    assert book.get_state(workspace).trusted


@pytest.mark.parametrize(
    ("change", "field", "name"),
    [
        (lambda place: (place / "AGENTS.md").write_text("Be cruel.\n"), "changed", "AGENTS.md"),
        (lambda place: (place / ".ollm/commands/x.md").write_text("x"), "added", ".ollm/commands/x.md"),
        (lambda place: (place / ".ollm/config.yaml").unlink(), "removed", ".ollm/config.yaml"),
        (lambda place: (place / ".mcp.json").symlink_to("/etc/passwd"), "added", ".mcp.json"),
    ],
)
def test_a_change_asks_again_and_says_what_changed(book: TrustBook, workspace: Path, change, field: str, name: str):
    book.trust(workspace)
    change(workspace)

    state = book.get_state(workspace)
    assert (state.trusted, state.known) == (False, True)
    assert getattr(state, field) == (name,)
    assert book.trust(workspace).trusted


def test_trust_goes_by_the_real_path(book: TrustBook, workspace: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(workspace)
    book.trust(link)

    assert book.get_state(workspace).trusted
    assert [state.workspace for state in book.list_states()] == [os.path.realpath(workspace)]
    assert not book.get_state(tmp_path).trusted


def test_a_link_that_leads_elsewhere_is_a_change(book: TrustBook, workspace: Path, tmp_path: Path):
    (tmp_path / "one").write_text("same")
    (tmp_path / "two").write_text("same")
    (workspace / ".mcp.json").symlink_to(tmp_path / "one")
    book.trust(workspace)
    (workspace / ".mcp.json").unlink()
    (workspace / ".mcp.json").symlink_to(tmp_path / "two")

    assert book.get_state(workspace).changed == (".mcp.json",)


def test_trust_can_be_taken_back(book: TrustBook, workspace: Path, tmp_path: Path):
    book.trust(workspace)
    book.revoke(workspace)

    assert not book.get_state(workspace).known
    with pytest.raises(NotFoundError):
        book.revoke(workspace)


def test_the_file_is_private_and_a_forged_list_does_not_pass(book: TrustBook, workspace: Path, tmp_path: Path):
    book.trust(workspace)
    file = tmp_path / "home/trust.json"
    assert file.stat().st_mode & 0o777 == 0o600

    document = json.loads(file.read_text())
    entry = document["workspaces"][os.path.realpath(workspace)]
    entry["files"]["AGENTS.md"] = "0" * 64
    file.write_text(json.dumps(document))
    assert not book.get_state(workspace).trusted


@pytest.mark.parametrize("content", ["", "{", "[]", '{"workspaces": []}', '{"workspaces": {"/x": 5}}'])
def test_a_damaged_file_is_reported_by_name(book: TrustBook, workspace: Path, tmp_path: Path, content: str):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/trust.json").write_text(content)

    with pytest.raises(StorageError, match=r"trust\.json"):
        book.get_state(workspace)


@pytest.mark.parametrize(
    ("file", "told", "script"),
    [
        (".ollm/config.yaml", "hooks: {before-turn: [./scripts/check.sh]}", "scripts/check.sh"),
        (".ollm/config.yaml", "hooks: {before-turn: ['\"$CLAUDE_PROJECT_DIR\"/tools/run.py -v']}", "tools/run.py"),
        (".ollm/config.yaml", "hooks: {before-turn: ['sh ${PWD}/tools/run.sh']}", "tools/run.sh"),
        (".mcp.json", '{"mcpServers": {"a": {"command": "python3", "args": ["srv/main.py"]}}}', "srv/main.py"),
        (".mcp.json", '{"mcpServers": {"a": {"command": "python3", "args": ["-m", "own.server"]}}}', "own/server.py"),
    ],
)
def test_what_hooks_and_servers_run_is_a_part_of_the_trust(
    book: TrustBook, workspace: Path, file: str, told: str, script: str
):
    """A script that is changed asks again, and so does one that was named before it was there."""
    (workspace / file).write_text(told)
    (workspace / script).parent.mkdir(parents=True)
    (workspace / script).write_text("harmless")
    book.trust(workspace)

    (workspace / script).write_text("harmful")

    assert book.get_state(workspace).changed == (script,)


def test_a_script_that_comes_to_be_after_it_was_named_asks_again(book: TrustBook, workspace: Path):
    (workspace / ".ollm/config.yaml").write_text("hooks: {before-turn: [./scripts/check.sh]}")
    assert book.trust(workspace).trusted

    (workspace / "scripts").mkdir()
    (workspace / "scripts/check.sh").write_text("harmful")

    assert not book.get_state(workspace).trusted


def test_a_no_is_remembered_until_the_files_change(book: TrustBook, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert not book.get_state(workspace).declined
    book.decline(workspace)
    book.trust(other)

    state = book.get_state(workspace)
    assert (state.declined, state.trusted, state.known) == (True, False, False)
    assert (book.get_state(other).declined, book.get_state(other).trusted) == (False, True)
    (workspace / "AGENTS.md").write_text("Other words.\n")
    assert not book.get_state(workspace).declined, "they are asked about again"

    book.decline(workspace)
    assert book.get_state(workspace).declined
    book.trust(workspace)
    state = book.get_state(workspace)
    assert (state.declined, state.trusted, state.known) == (False, True, True)
    assert [found.workspace for found in book.list_states()] == sorted(map(os.path.realpath, (other, workspace)))


def test_which_files_a_command_names(workspace: Path) -> None:
    for name in ("check.sh", "data.db", "pkg/__main__.py", "pkg/tool.py", "pkg/__init__.py"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("x")

    def name_files(text: str) -> list[str]:
        return [str(path.relative_to(workspace)) for path in find_named_files(workspace, [text])]

    assert name_files("sh check.sh data.db main.py") == ["check.sh", "main.py"]
    assert name_files('"$CLAUDE_PROJECT_DIR"/check.sh') == ["check.sh"]
    assert name_files("python -m pkg.tool")[:1] == ["pkg/tool.py"]
    assert name_files("python -m pkg") == ["pkg/__main__.py", "pkg/__init__.py"]
    assert name_files("sh late/new.sh new.sh late/new.txt") == ["late/new.sh"]
    assert name_files("cat ../project/main.py /etc/passwd ../x.sh a/../../x.sh") == ["main.py"]
    assert name_files(" ".join(f"s/{number}.sh" for number in range(250))) == [f"s/{n}.sh" for n in range(200)]


def test_a_change_behind_thousands_of_files_asks_again(
    book: TrustBook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "_MAX_FILES", 4)
    for number in range(5):
        (workspace / f".ollm/commands/{number}.md").write_text("x")
    (workspace / ".ollm/hooks").mkdir()
    (workspace / ".ollm/hooks/run.sh").write_text("true")

    state = book.trust(workspace)
    assert state.trusted
    assert state.files == (
        ".ollm/commands/0.md",
        ".ollm/commands/1.md",
        ".ollm/config.yaml",
        ".ollm: 4 more files",
        "AGENTS.md",
    )
    (workspace / ".ollm/hooks/run.sh").write_text("evil")
    assert book.get_state(workspace).changed == (".ollm: 4 more files",)
    assert book.trust(workspace).trusted
    (workspace / ".ollm/hooks/run.sh").rename(workspace / ".ollm/hooks/other.sh")
    assert not book.get_state(workspace).trusted


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


def test_a_login_in_the_settings_of_git_is_not_read_unasked(tmp_path: Path) -> None:
    place = Place(tmp_path)
    engine = place.engine()
    (place.workspace / ".env").unlink()
    subprocess.run(["git", "init", "-q", place.workspace], check=True)
    lines = ("cat .git/config", "cat .git/*", "grep -r x .", "rg -uu x", "git remote -v", "git remote get-url origin")

    def decide() -> dict[str, str]:
        return {line: judge(place, line, "full").decision for line in (*lines, "git remote", "git status", "rg x")}

    assert set(decide().values()) == {"allow"}
    for setting in ("remote.origin.url=https://token@example.org/a", "http.extraheader=Authorization: basic x"):
        file = place.workspace / ".git/config"
        before = file.read_text()
        subprocess.run(["git", "-C", place.workspace, "config", *setting.split("=")], check=True)
        assert decide() == dict.fromkeys(lines, "ask") | dict.fromkeys(("git remote", "git status", "rg x"), "allow")
        verdict = engine.evaluate(PolicyRequest(tool="read_file", params={"path": ".git/config"}))
        assert "contains a login" in verdict.reason
        file.write_text(before)
    shell = ShellJudge(engine.rules, place.boundary, find_level=lambda: "full")
    assert shell.judge({"command": "git push https://token@example.org/a"}, [], "ask").outside


@pytest.mark.parametrize("path", ["~/.ssh/id_rsa", "~/.ollm/config.yaml", "$HOME/.ssh/config", "~/.bashrc", "~"])
def test_home_is_outside_and_its_secrets_are_never_read_unasked(place: Place, path: str):
    engine = place.engine([{"tool": "shell", "action": "allow"}], approval="yolo")

    assert shell(engine, f"cat {path}").locked
    assert shell(engine, f"echo x > {path}").locked


def test_of_several_places_a_refusal_counts_and_questions_are_asked_together(place: Place) -> None:
    def evaluate(*paths: str) -> tuple[str, str, tuple[str, ...]]:
        verdict = place.engine().evaluate(PolicyRequest(tool="read_many_files", params={"paths": list(paths)}))
        return verdict.decision, verdict.reason, verdict.approve

    assert evaluate("a", "src/*.py")[0] == "allow"
    assert evaluate("out/[a-p]*")[2] == ("/etc",)
    assert evaluate("/etc/a", "a", "/etc/*.conf", "/etc/a") == (
        "ask",
        "/etc/a is outside the workspace; /etc/*.conf is outside the workspace",
        ("/etc/a", "/etc"),
    )
