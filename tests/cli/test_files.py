"""`ollm files`, run as a person runs it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_symbolic_links_are_listed_and_not_followed(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    (root / "all").symlink_to("src")
    (root / "src" / "b.py").symlink_to("nowhere")
    (root / "src" / "gen").rename(root / "old")
    (root / "src" / "gen").symlink_to("../old")

    done = ollm("files", "*.py", "all", home=tmp_path / "home", cwd=root)
    everything = ollm("files", home=tmp_path / "home", cwd=root)

    assert done.stdout.splitlines() == ["all", "old/b.py", "src/a.py", "src/b.py"]
    assert "src/gen" in everything.stdout.splitlines()  # as in git: `gen/` hides directories


def test_a_name_that_nothing_has_is_refused(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    (root / "empty").mkdir()

    found = {
        name: ollm("files", name, home=tmp_path / "home", cwd=root).returncode
        for name in ("nowhere", "*.nowhere", "empty", "a.py")
    }

    assert found == {"nowhere": 2, "*.nowhere": 0, "empty": 0, "a.py": 0}


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


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_terminal_gets_no_name_that_drives_it(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    root = tmp_path / "odd"
    plant(root, "a\x1b[31m.txt", "two\nlines")

    shown = read_terminal(root, tmp_path / "home", *arguments)

    assert b"\x1b[31m" not in shown
    assert b"txt" in shown


def read_terminal(root: Path, home: Path, *arguments: str) -> bytes:
    """What the command shows at a terminal."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "ollm", "files", *arguments],
            cwd=root,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OLLM_HOME": str(home)},
            check=True,
        )
        return os.read(ours, 1 << 16)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_reader_that_goes_away_and_a_full_disk(tmp_path: Path) -> None:
    root = tmp_path / "project"
    plant(root, *(f"a_rather_long_name_to_fill_a_pipe_{number:06}" for number in range(3000)))
    environment = {**os.environ, "OLLM_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    command = subprocess.Popen(
        [SCRIPT, "files"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert command.stdout
    command.stdout.read(10)
    command.stdout.close()
    assert command.stderr
    assert (command.stderr.read(), command.wait()) == (b"", 1)
    command.stderr.close()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [SCRIPT, "files"], cwd=root, stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 2)
    assert b"Cannot write the output" in done.stderr


def test_settings_of_the_person_and_of_a_trusted_workspace_count_at_once(tmp_path: Path) -> None:
    root, home = project(tmp_path / "project"), tmp_path / "home"
    plant(root, "own/x")
    (root / ".ollm").mkdir()
    (root / ".ollm" / "config.yaml").write_text("fileDiscovery:\n  builtinIgnores: [own]\n")
    home.mkdir()
    assert "own/x" in ollm("files", home=home, cwd=root).stdout
    (home / "config.yaml").write_text("fileDiscovery:\n  builtinIgnores: [.github]\n")
    assert "node_modules/x.js" in ollm("files", home=home, cwd=root).stdout
    assert ollm("trust", home=home, cwd=root).returncode == 0
    assert "own/x" not in ollm("files", home=home, cwd=root).stdout
    (home / "config.yaml").write_text("fileDiscovry: {}\n")
    assert "fileDiscovry" in ollm("files", home=home, cwd=root).stderr


def test_the_list_needs_neither_asyncio_nor_a_heavy_library(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    code = (
        f"import sys; sys.argv = ['ollm', 'files', '*.py', '--workspace', {str(root)!r}]\n"
        "from ollm.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "print(sorted({'asyncio', 'rich', 'ruamel', 'rapidfuzz', 'ssl'} & set(sys.modules)), file=sys.stderr)"
    )

    environment = {**os.environ, "OLLM_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("src/a.py\n", "[]\n")


def test_an_empty_list_prints_nothing_and_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    nothing = ollm("files", "*.rs", home=tmp_path / "home", cwd=root)
    wrong = ollm("files", "--jsn", home=tmp_path / "home", cwd=root)
    unfinished = ollm("files", "--workspace", home=tmp_path / "home", cwd=root)

    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert (wrong.returncode, unfinished.returncode) == (2, 2)
    assert "--json" in wrong.stderr
