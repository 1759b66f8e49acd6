"""`ollm files outline` and `ollm files map`, run as a person runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.services.token_counting import TokenCounter
from tests.cli.command import ollm
from tests.services.code_map.samples import GO, PYTHON, RUST, TYPESCRIPT


def plant(root: Path) -> Path:
    (root / "shop").mkdir(parents=True)
    (root / "map").mkdir()
    (root / "map" / "x.txt").write_text("x")
    for name, text in {"cart.py": PYTHON, "shape.ts": TYPESCRIPT, "server.go": GO, "point.rs": RUST}.items():
        (root / "shop" / name).write_text(text, encoding="utf-8")
    (root / "shop" / "app.py").write_text("from shop.cart import Cart, only_here\nCart()\nonly_here()\n")
    return root


def run(*arguments: str, tmp_path: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return ollm("files", *arguments, home=tmp_path / "home", cwd=cwd or plant(tmp_path / "project"))


def test_an_outline_is_printed(tmp_path: Path) -> None:
    done = run("outline", "shop/point.rs", tmp_path=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shop/point.rs: 16 lines\n    3 pub struct Point<T>\n")


def test_a_map_is_printed_and_its_facts_are_kept(tmp_path: Path) -> None:
    done = run("map", tmp_path=tmp_path)

    assert done.returncode == 0
    assert done.stdout == "shop/cart.py\n  8 class Cart(Base)\n  27 def only_here()\n"
    assert len(list((tmp_path / "home" / "cache" / "code").iterdir())) == 1


def test_a_map_for_a_question_as_json(tmp_path: Path) -> None:
    done = run("map", "shop", "--for", "run the server", "--tokens", "60", "--json", tmp_path=tmp_path)

    assert json.loads(done.stdout)["text"].startswith("shop/server.go\n")


def test_a_question_of_words_that_every_question_has_finds_nothing(tmp_path: Path) -> None:
    done = run("map", "--for", "where is the", tmp_path=tmp_path)

    assert "No file in the workspace has to do with that; ask in other words." in done.stdout + done.stderr
    assert "crashed" not in done.stderr


def test_a_directory_of_that_name_is_still_listed(tmp_path: Path) -> None:
    assert run("map/", tmp_path=tmp_path).stdout == "map/x.txt\n"


def test_mistakes_are_told(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    def fail(*arguments: str) -> tuple[int, str]:
        done = run(*arguments, tmp_path=tmp_path, cwd=root)
        return done.returncode, done.stderr

    assert fail("outline") == (
        2,
        "Usage: ollm files outline [OPTIONS] PATH\nollm: Missing argument 'PATH'.\n  See `ollm files outline --help`.\n",
    )
    assert fail("outline", "nope") == (1, "ollm: nope does not exist.\n")
    assert fail("map", "--tokens", "0")[0] == 2
    code, said = fail("outline", "/etc/hostname")
    assert code == 1
    assert "--workspace" in said


def test_a_setting_bounds_the_map(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")
    ollm("config", "set", "codeMap.maxTokens", "12", home=tmp_path / "home", cwd=root)

    assert "only_here" not in run("map", tmp_path=tmp_path, cwd=root).stdout
    done = ollm("config", "set", "codeMap.maxTokens", "0", home=tmp_path / "home", cwd=root)
    assert done.returncode != 0


def test_without_the_extra_outlines_are_not_offered_and_doctor_says_how_to_get_them(tmp_path: Path) -> None:
    """A finder that hides the packages stands in for an extra that is not installed."""
    root, hiding = plant(tmp_path / "project"), tmp_path / "hiding"
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

    for more in ((), ("--for", "helper")):
        done = run("map", place, "--tokens", "120", *more, tmp_path=tmp_path, cwd=root)
        assert done.stdout.startswith(f"{place}/")
        assert TokenCounter().count_text(done.stdout.rstrip("\n")) <= 120

    tiny = run("map", place, "--tokens", "1", tmp_path=tmp_path, cwd=root)
    assert tiny.stderr == f"ollm: No line of the map of {place} fits into 1 token; allow more.\n"


def test_a_broken_file_is_outlined_and_said_to_be_broken(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")
    (root / "bad.py").write_text("def a(:\n    x = (\n\ndef b():\n    pass\n")

    done = run("outline", "bad.py", tmp_path=tmp_path, cwd=root)

    assert done.stdout.startswith("bad.py: 5 lines; line 1 does not parse, so something may be missing here\n")
    assert "    4 def b()" in done.stdout


def test_a_symbol_is_found_in_a_large_file_and_a_near_one_named(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")
    (root / "big.py").write_text("".join(f"def number_{n}():\n    return '{'x' * 60}'\n" for n in range(8000)))

    def read(symbol: str) -> subprocess.CompletedProcess[str]:
        given = json.dumps({"symbol": symbol})
        return ollm("tools", "run", "read_file", "--args", given, home=tmp_path / "home", cwd=root)

    assert read("number_7999").stdout.startswith("[big.py, lines 15999 to 16000]\ndef number_7999():\n")
    assert "; did you mean only_here?" in read("ONLY_HERE").stderr


def test_a_refused_outline_says_why_and_what_to_do(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")
    (root / ".env").write_text("KEY=1\n")
    secret = run("outline", ".env", tmp_path=tmp_path, cwd=root)
    elsewhere = run("outline", "/etc/passwd", tmp_path=tmp_path, cwd=root)

    assert (secret.returncode, "--workspace" in secret.stderr) == (1, False)
    assert "files that may hold secrets are not outlined" in secret.stderr
    assert "--workspace" in elsewhere.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
def test_a_name_that_is_not_utf_8_is_on_the_map(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.py")).write_text("def odd_one(): ...\n")
    (root / "user.py").write_text("odd_one()\n")

    for _ in range(2):
        done = run("map", tmp_path=tmp_path, cwd=root)
        assert (done.returncode, done.stderr) == (0, "")
        assert "def odd_one()" in done.stdout
