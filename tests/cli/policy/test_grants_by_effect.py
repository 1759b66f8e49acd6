"""Grants through the command, judged by what was written: bound to a workspace, and never for a place outside."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.policy.grants import GrantBook
from tests.cli.command import ollm


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with a secret, and two workspaces in it."""
    for path in ("user/.ssh/id_rsa", "user/one/a", "user/two/a", "outside/file"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("untouched\n")
    (tmp_path / "user/.ollm").mkdir()
    return tmp_path


def run(place: Path, workspace: str, command: str, *options: str) -> dict[str, Any]:
    given = json.dumps({"command": command})
    done = ollm(
        "tools", "run", "shell", "--args", given, "--json", *options,
        home=place / "user/.ollm", cwd=place / "user" / workspace, HOME=str(place / "user"),
    )  # fmt: skip
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def grant(place: Path, text: str, scope: Any) -> None:
    book = GrantBook(place / "user/.ollm/grants.yaml", workspace=place / "user/one")
    book.add(text, scope)


def test_always_is_for_one_workspace_and_everywhere_for_all(place: Path) -> None:
    grant(place, "shell:touch", "always")
    run(place, "one", "touch made")
    refused = run(place, "two", "touch made")

    assert (place / "user/one/made").exists()
    assert not (place / "user/two/made").exists()
    assert refused["error"]["type"] == "Denied"
    grant(place, "shell:touch", "everywhere")
    run(place, "two", "touch made")
    assert (place / "user/two/made").exists()


@pytest.mark.parametrize(
    "line",
    [
        "touch OUT/made", "touch ../two/made", "touch -r OUT/file made", "touch $(echo made)", "touch made > made2",
        "touch .git/made", "touch .env", "touch made; cat KEY > made", "touch --reference=KEY made", "touch ~/made",
        "X=1 touch made", "xargs touch made", "./touch made",
    ],
)  # fmt: skip
def test_a_grant_by_its_first_words_covers_no_place_outside_and_nothing_around_it(place: Path, line: str) -> None:
    command = line.replace("OUT", str(place / "outside")).replace("KEY", str(place / "user/.ssh/id_rsa"))
    before = sorted(path for path in place.rglob("*") if ".ollm" not in path.parts)
    done = run(place, "one", command, "--allow", "shell:touch")

    assert done["error"]["type"] == "Denied", done
    assert sorted(path for path in place.rglob("*") if ".ollm" not in path.parts) == before


def test_a_grant_for_one_command_covers_that_command(place: Path) -> None:
    assert run(place, "one", "touch made", "--allow", "shell:=touch made")["ok"]
    assert not run(place, "one", "touch made other", "--allow", "shell:=touch made")["ok"]
    assert (place / "user/one/made").exists()
    assert not (place / "user/one/other").exists()


@pytest.mark.parametrize("line", ["script -qc 'cat KEY' /dev/null", "taskset 1 cat KEY", "taskset 1 tee OUT/file"])
def test_yes_neither_reads_nor_writes_outside_through_a_program_that_starts_others(place: Path, line: str) -> None:
    (place / "user/.ollm/config.yaml").write_text("sandbox: {mode: 'off'}\n")
    command = line.replace("OUT", str(place / "outside")).replace("KEY", str(place / "user/.ssh/id_rsa"))

    done = run(place, "one", command, "--yes")

    assert done["error"]["type"] == "Denied"
    assert "untouched" not in done["llmContent"]
    assert (place / "outside/file").read_text() == "untouched\n"
