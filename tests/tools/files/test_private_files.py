"""What reading many files at once leaves out: files that a person would have to be asked about."""

from pathlib import Path

import pytest

from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext
from ollm.tools.search.scope import describe_skipped, drop_private_files


@pytest.mark.parametrize(
    "kept",
    [
        ["a.py", "src/b.py"],
        ["environment.py", "a.envx"],
        [".env.example", "src/.env.sample"],
        ["ä.py"],
    ],
)
def test_ordinary_files_stay(context: ToolContext, workspace: Path, kept: list[str]) -> None:
    assert drop_private_files(context, workspace, kept) == kept


@pytest.mark.parametrize("name", [".env", "src/.env", ".env.local", ".ENV", "ä/.env.production", ".env/x"])
def test_files_that_may_hold_secrets_go(context: ToolContext, workspace: Path, name: str) -> None:
    assert drop_private_files(context, workspace, ["a.py", name, "b.py"]) == ["a.py", "b.py"]


def test_where_the_home_is_inside_keys_and_our_own_records_go_too(workspace: Path) -> None:
    home = workspace / "home"
    context = ToolContext(boundary=Boundary.around(workspace, user_home=home, ollm_home=home / ".ollm"))
    paths = ["a.py", "home/.ssh/id_rsa", "home/.ollm/sessions/x.json", "home/notes.txt", ".env"]

    assert drop_private_files(context, workspace, paths) == ["a.py", "home/notes.txt"]
    assert drop_private_files(context, workspace / "other", ["x/.ssh/id_rsa"]) == ["x/.ssh/id_rsa"]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1 file that may contain secrets (.env and the like) was skipped; name one to read it"),
        (2, "2 files that may contain secrets (.env and the like) were skipped; name one to read it"),
        (1200, "1,200 files that may contain secrets (.env and the like) were skipped; name one to read it"),
    ],
)
def test_how_many_were_left_out_is_said(count: int, words: str) -> None:
    assert describe_skipped(count) == words
