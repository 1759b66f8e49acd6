"""`ollm files`, run as a person runs it."""

import json
import os
import subprocess
from pathlib import Path

from tests.cli.command import SCRIPT, ollm
from tests.covers import covers
from tests.services.file_discovery.looking import plant, rules


def project(root: Path) -> Path:
    plant(root, "src/a.py", "src/gen/b.py", "README.md", "node_modules/x.js", ".github/ci.yml")
    rules(root, ".gitignore", "gen/")
    return root


@covers("S6.1", "S6.3", "S6.4")
def test_the_files_are_listed_as_the_agent_sees_them(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    done = ollm("files", home=tmp_path / "home", cwd=root)

    assert done.stdout.splitlines() == [".gitignore", "README.md", ".github/ci.yml", "src/a.py"]
    assert done.returncode == 0
    assert done.stderr == ""


def test_patterns_and_directories_narrow_the_list(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    def listed(*arguments: str) -> list[str]:
        return ollm(
            "files", *arguments, "--workspace", str(root), home=tmp_path / "home", cwd=tmp_path
        ).stdout.splitlines()

    assert listed("*.py") == ["src/a.py"]
    assert listed("src") == ["src/a.py"]
    assert listed("src/", "*.md") == ["README.md", "src/a.py"]
    assert listed(".") == [".gitignore", "README.md", ".github/ci.yml", "src/a.py"]
    assert json.loads("\n".join(listed("--json", "*.md"))) == ["README.md"]


def test_a_path_is_explained(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    said = ollm("files", "--explain", "src/gen/b.py", home=tmp_path / "home", cwd=root)
    as_json = ollm("files", "--explain", "src/gen/b.py", "--json", home=tmp_path / "home", cwd=root)

    assert said.stdout == "src/gen/b.py is not shown: .gitignore:1 hides src/gen: gen/.\n"
    assert json.loads(as_json.stdout) == {
        "path": "src/gen/b.py",
        "shown": False,
        "reason": ".gitignore:1 hides src/gen: gen/",
        "decidedAt": "src/gen",
        "rule": "gen/",
        "source": ".gitignore",
        "line": 1,
    }


def test_a_rule_that_cannot_be_used_is_told_on_stderr(tmp_path: Path) -> None:
    plant(tmp_path / "project", "a")
    rules(tmp_path / "project", ".ollmignore", "[")

    done = ollm("files", home=tmp_path / "home", cwd=tmp_path / "project")

    assert done.stdout.splitlines() == [".ollmignore", "a"]
    assert ".ollmignore:1 skipped: " in done.stderr


def test_names_that_are_not_text_reach_a_program_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).touch()

    done = subprocess.run([SCRIPT, "files", "caf*"], cwd=tmp_path, capture_output=True, check=True)

    assert done.stdout == b"caf\xe9\n"


def test_a_bad_glob_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = ollm("files", "[", home=tmp_path / "home", cwd=tmp_path)

    assert done.returncode == 2
    assert "Invalid glob '['" in done.stderr
    assert "Traceback" not in done.stderr


@covers("D444")
def test_limits_from_the_settings_are_kept_and_said(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("fileDiscovery: {maxDepth: 0, builtinIgnores: [src]}\n")

    done = ollm("files", home=home, cwd=root)

    assert done.stdout.splitlines() == [".gitignore", "README.md"]
    assert "skipped 2 directories deeper than fileDiscovery.maxDepth" in done.stderr


@covers("D320", "D321")
def test_ignored_paths_are_told_and_the_patterns_listed(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    def told(*arguments: str) -> list[str]:
        return ollm("files", "--ignored", *arguments, home=tmp_path / "home", cwd=root).stdout.splitlines()

    assert told("src/gen/b.py", "src/a.py", "src/gen", "node_modules/x.js", "../outside.log", ".") == [
        "src/gen/b.py",
        "src/gen",
        "node_modules/x.js",
    ]
    assert told("src/a.py") == []
    assert json.loads("".join(told("--json", "src/gen"))) == ["src/gen"]
    patterns = told()
    assert patterns[-1] == "gen/"
    assert "node_modules" in patterns
