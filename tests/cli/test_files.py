"""`ollm files` and its outlines and maps, run as a person runs them."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.services.token_counting import TokenCounter
from tests.cli.command import SCRIPT, ollm
from tests.covers import covers
from tests.services.code_map.samples import GO, PYTHON, RUST, TYPESCRIPT
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


def plant_code(root: Path) -> Path:
    (root / "shop").mkdir(parents=True)
    (root / "map").mkdir()
    (root / "map" / "x.txt").write_text("x")
    for name, text in {"cart.py": PYTHON, "shape.ts": TYPESCRIPT, "server.go": GO, "point.rs": RUST}.items():
        (root / "shop" / name).write_text(text, encoding="utf-8")
    (root / "shop" / "app.py").write_text("from shop.cart import Cart, only_here\nCart()\nonly_here()\n")
    return root


def run(*arguments: str, tmp_path: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return ollm("files", *arguments, home=tmp_path / "home", cwd=cwd or plant_code(tmp_path / "project"))


def test_an_outline_is_printed(tmp_path: Path) -> None:
    done = run("outline", "shop/point.rs", tmp_path=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shop/point.rs: 16 lines\n    3 pub struct Point<T>\n")


def test_a_map_is_printed_and_its_facts_are_kept(tmp_path: Path) -> None:
    done = run("map", tmp_path=tmp_path)

    assert done.returncode == 0
    assert done.stdout == "shop/cart.py\n  8 class Cart(Base)\n  27 def only_here()\n"
    assert len(list((tmp_path / "home" / "cache" / "code").iterdir())) == 1


def test_a_directory_of_that_name_is_still_listed(tmp_path: Path) -> None:
    assert run("map/", tmp_path=tmp_path).stdout == "map/x.txt\n"


def test_mistakes_are_told(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")

    def fail(*arguments: str) -> tuple[int, str]:
        done = run(*arguments, tmp_path=tmp_path, cwd=root)
        return done.returncode, done.stderr

    assert fail("outline") == (
        2,
        "Usage: ollm files outline [OPTIONS] PATH\nollm: Missing argument 'PATH'.\n  See `ollm files outline --help`.\n",
    )
    assert fail("outline", "nope") == (1, "ollm: nope does not exist.\n")
    assert fail("map", "--tokens", "0")[0] == 2


def test_a_setting_bounds_the_map(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")
    ollm("config", "set", "codeMap.maxTokens", "12", home=tmp_path / "home", cwd=root)

    assert "only_here" not in run("map", tmp_path=tmp_path, cwd=root).stdout
    done = ollm("config", "set", "codeMap.maxTokens", "0", home=tmp_path / "home", cwd=root)
    assert done.returncode != 0


def test_without_the_extra_outlines_are_not_offered_and_doctor_says_how_to_get_them(tmp_path: Path) -> None:
    """A finder that hides the packages stands in for an extra that is not installed."""
    root, hiding = plant_code(tmp_path / "project"), tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(
        "import sys, importlib.machinery as m\n"
        "find = m.PathFinder.find_spec\n"
        "hide = lambda name, *more: None if name.startswith('tree_sitter') else find(name, *more)\n"
        "m.PathFinder.find_spec = hide\n"
    )
    hidden = {"home": tmp_path / "home", "cwd": root, "PYTHONPATH": str(hiding)}

    for done in (ollm("files", "outline", "shop/server.go", **hidden), ollm("files", "map", **hidden)):
        assert done.returncode == 1
        assert "need the extra `code`" in done.stderr
        assert "[code]" in done.stderr or "[all]" in done.stderr
    told = ollm("doctor", **hidden)
    assert "[code]" in told.stdout + told.stderr
    assert "outline" not in ollm("tools", "list", **hidden).stdout
    assert "outline" in ollm("tools", "list", home=tmp_path / "home", cwd=root).stdout


def test_a_map_of_a_directory_keeps_to_its_tokens_with_its_paths(tmp_path: Path) -> None:
    root = tmp_path / "project"
    deep = root / "a_long_directory_name" / "another_long_directory_name"
    deep.mkdir(parents=True)
    for number in range(30):
        (deep / f"part{number}.py").write_text(f"def helper{number}(): pass\n")
    (deep / "all.py").write_text("".join(f"from part{n} import helper{n}\nhelper{n}()\n" for n in range(30)))
    place = str(deep.relative_to(root))

    done = run("map", place, "--tokens", "120", tmp_path=tmp_path, cwd=root)
    assert done.stdout.startswith(f"{place}/")
    assert TokenCounter().count_text(done.stdout.rstrip("\n")) <= 120

    tiny = run("map", place, "--tokens", "1", tmp_path=tmp_path, cwd=root)
    assert tiny.stderr == f"ollm: No line of the map of {place} fits into 1 token; allow more.\n"


def test_a_broken_file_is_outlined_and_said_to_be_broken(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")
    (root / "bad.py").write_text("def a(:\n    x = (\n\ndef b():\n    pass\n")

    done = run("outline", "bad.py", tmp_path=tmp_path, cwd=root)

    assert done.stdout.startswith("bad.py: 5 lines; line 1 does not parse, so something may be missing here")


def test_a_symbol_is_found_in_a_large_file_and_a_near_one_named(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")
    (root / "big.py").write_text("".join(f"def number_{n}():\n    return '{'x' * 60}'\n" for n in range(8000)))

    def read(symbol: str) -> subprocess.CompletedProcess[str]:
        given = json.dumps({"symbol": symbol})
        return ollm("tools", "run", "read_file", "--args", given, home=tmp_path / "home", cwd=root)

    assert read("number_7999").stdout.startswith("[big.py, lines 15999 to 16000]\ndef number_7999():\n")
    assert "; did you mean only_here?" in read("ONLY_HERE").stderr


def test_a_refused_outline_says_why_and_what_to_do(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")
    (root / ".env").write_text("KEY=1\n")
    secret = run("outline", ".env", tmp_path=tmp_path, cwd=root)
    elsewhere = run("outline", "/etc/passwd", tmp_path=tmp_path, cwd=root)

    assert (secret.returncode, "--workspace" in secret.stderr) == (1, False)
    assert "files that may hold secrets are not outlined" in secret.stderr
    assert "--workspace" in elsewhere.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
def test_a_name_that_is_not_utf_8_is_on_the_map(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.py")).write_text("def odd_one(): ...\n")
    (root / "user.py").write_text("odd_one()\n")

    for _ in range(2):
        done = run("map", tmp_path=tmp_path, cwd=root)
        assert (done.returncode, done.stderr) == (0, "")
        assert "def odd_one()" in done.stdout
