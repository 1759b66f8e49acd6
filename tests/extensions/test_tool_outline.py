"""The tools an extension brings, named before it is loaded."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ollm.extensions.install import describe_tools
from ollm.extensions.loader import Addition, Manifest
from tests.cli.running import running


def extension(folder: Path, adds: dict[str, Any], **modules: str) -> Path:
    folder.mkdir(parents=True)
    manifest = {"name": folder.name, "version": "1", "description": "For a test.", "adds": adds}
    (folder / "extension.yaml").write_text(json.dumps(manifest))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text))
    return folder


async def test_consent_names_the_tools_and_a_failed_add_leaves_nothing(tmp_path: Path) -> None:
    tool = 'class Whisper:\n    """Say it softly."""\n    name = \'whisper\'\n'
    extension(tmp_path / "source", {"tools": {"pair": "it:Whisper"}}, it=tool)
    async with running(tmp_path, []) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("extensions: {enabled: [x]}\nextensions: {}\n")
        failed = await runner.run("extensions", "add", str(tmp_path / "source"), "--yes")
        left = list((runner.home / "extensions").glob("*")) if (runner.home / "extensions").exists() else []
        (runner.home / "config.yaml").write_text("{}")
        done = await runner.run("extensions", "add", str(tmp_path / "source"), "--yes")

    assert failed.code != 0
    assert left == []
    assert "tool whisper: Say it softly. It may change things" in done.err
    assert done.code == 0, done.err


def describe(folder: Path, source: str, target: str = "code:T") -> str:
    (folder / "code.py").write_text(source)
    adds = (Addition(kind="tools", name="listed", target=target), Addition(kind="context", name="c", target="code:c"))
    (line,) = describe_tools(folder, Manifest(name="m", version="1", description="", adds=adds))
    return line


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("class T:\n    '''Count\\n    words.'''\n    name = 'count'", "  tool count: Count It may change things"),
        (
            "class T:\n    '''Look.'''\n    name: str = 'look'\n    reads_only = True",
            "  tool look: Look. It says that it only reads",
        ),
        ("class T:\n    reads_only = 1\n    name = 5", "  tool listed:  It may change things"),
        ("class T:\n    a = b = 'x'\n    name = make()", "  tool listed:  It may change things"),
    ],
)
def test_a_tool_says_what_it_is_called_and_whether_it_changes_things(tmp_path: Path, source: str, line: str) -> None:
    assert describe(tmp_path, source).startswith(f"{line}, and asks before it runs unless a rule allows it")


@pytest.mark.parametrize("source", ["def T(): pass", "class Other: pass", "class T(", "T = 1"])
def test_what_is_only_known_when_it_runs_is_said_to_be(tmp_path: Path, source: str) -> None:
    assert describe(tmp_path, source) == (
        "  listed: which tools these are is known when it runs; each asks before it runs"
    )
