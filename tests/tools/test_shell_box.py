"""The box a command runs in, and what is said of one that lacked something there."""

from pathlib import Path

import msgspec
import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import Lazy
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.sandbox import Sandbox
from ollm.tools.framework.base import ToolContext
from ollm.tools.shell import Shell, explain_box_failure


async def test_where_a_sandbox_is_required_and_missing_nothing_runs(context: ToolContext, tmp_path: Path) -> None:
    missing = Sandbox(tmp_path, tmp_path / "home", cache=tmp_path, mode="require")
    boxed = msgspec.structs.replace(context, lazy_sandbox=Lazy(lambda: missing))

    with pytest.raises(ToolFailure) as caught:
        await Shell(command="touch made").run(boxed, None)  # type: ignore[arg-type]
    assert caught.value.kind == "Denied"
    assert caught.value.message.startswith("Not run: the settings require a sandbox (sandbox.mode), and there is ")
    assert not (context.workspace / "made").exists()


WORKING = Box("working", "/w", "/home/u", network="none", protected=("/w/.git", "/w/scripts/hook.sh"))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("git@host: Permission denied (publickey).", "hidden"),
        ("curl: (6) Could not resolve host: example.org", "without a network"),
        ("touch: cannot touch '/etc/x': Read-only file system", "only the workspace"),
        ("rm: cannot remove 'scripts/hook.sh': Device or resource busy", "scripts/hook.sh cannot be changed"),
        ("fatal: Unable to create '/w/.git/index.lock': Read-only file system", "plain `git VERB …` commands"),
        ("1 test failed", ""),
    ],
)
def test_what_was_lacking_is_said_with_the_way(output: str, said: str) -> None:
    hint = explain_box_failure(WORKING, (), output, 1)

    assert said in hint
    assert ("outside: true" in hint) == bool(said)


def test_blocked_files_are_named_from_the_workspace() -> None:
    hint = explain_box_failure(WORKING, ("/w/.mcp.json", "/w/a/AGENTS.md", "/w/.vscode", "/w/.idea"), "", 0)

    assert ".mcp.json, a/AGENTS.md, .vscode and 1 more" in hint


def test_a_protected_file_is_named_if_its_folder_was_to_move_or_the_command_went_on_without_it() -> None:
    for output in (
        "mv: cannot move 'scripts' to 'n': Device or resource busy",
        "rm: cannot remove 'scripts/hook.sh': Read-only file system",
    ):
        assert "scripts/hook.sh cannot be changed" in explain_box_failure(WORKING, (), output, 0)


def test_success_and_no_box_say_nothing() -> None:
    assert explain_box_failure(WORKING, (), "Read-only file system", 0) == ""
    assert explain_box_failure(None, (), "Read-only file system", 1) == ""


def test_a_path_of_the_home_that_is_not_visible_is_named_exactly_with_the_setting(tmp_path: Path) -> None:
    (tmp_path / ".config/tool").mkdir(parents=True)
    (tmp_path / ".config/tool/settings").touch()
    (tmp_path / "work").mkdir()
    box = Box("working", str(tmp_path / "work"), str(tmp_path), covered=(str(tmp_path),))

    hint = explain_box_failure(box, (), f"tool: {tmp_path}/.config/tool/settings: No such file or directory", 2)
    assert hint.startswith("~/.config/tool/settings exists but is not visible in the sandbox; the user can show it")
    (tmp_path / "link").symlink_to(tmp_path / ".config/tool/settings")
    assert explain_box_failure(box, (), f"bash: {tmp_path}/link: Permission denied", 126) == hint
    remote = f"fetching file://{tmp_path}/.config/tool.\nfatal: Could not read from remote repository."
    assert explain_box_failure(box, (), remote, 128).startswith("~/.config/tool exists but is not visible")
    hint = explain_box_failure(box, (), f"Read-only file system @ dir_s_mkdir - {tmp_path}/.config/new/x/", 1)
    assert "~/.config" not in hint
    hint = explain_box_failure(box, (), f"Read-only file system @ dir_s_mkdir - {tmp_path}/.config/new", 1)
    assert hint.startswith("~/.config/new does not exist, and cannot be created in the sandbox; the user can create it")
    assert explain_box_failure(box, (), f"cat: {tmp_path}/.none: No such file or directory", 1) == ""


def test_a_protected_file_is_the_reason_although_a_hidden_path_is_named(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "work/.git/hooks").mkdir(parents=True)
    held = (str(tmp_path / "work/.git/hooks"),)
    box = Box("working", str(tmp_path / "work"), str(tmp_path), covered=(str(tmp_path),), protected=held)
    output = f"warning: file://{tmp_path}/repo\nOSError: [Errno 30] Read-only file system: '.git/hooks/pre-commit'"

    assert explain_box_failure(box, (), output, 3).startswith("The repository is read-only for this command.")


@pytest.mark.parametrize("name", ["out", "../out", "new"])
def test_a_write_outside_without_mounts_is_told_from_a_missing_permission(tmp_path: Path, name: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "out").touch()
    box = Box("working", str(tmp_path / "work"), "/home/u", scratch="/scratch")
    path = name if name.startswith("..") else tmp_path / name

    hint = explain_box_failure(box, (), f"bash: {path}: Permission denied", 1)

    assert "only the workspace, $TMPDIR and sandbox.writable can be written" in hint
    assert explain_box_failure(box, (), f"bash: {tmp_path}/work/x: Permission denied", 1) == ""
    assert explain_box_failure(box, (), "bash: /none/at/all: Permission denied", 1) == ""
