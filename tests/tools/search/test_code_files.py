"""A symbol that is looked for in a whole workspace, through the command."""

from pathlib import Path

from tests.cli.command import ollm


def plant(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("class Turn:\n    def run(self):\n        return 1\n")
    (root / "src" / "b.py").write_text("class Other:\n    def run(self):\n        return 2\n")
    (root / ".env").write_text("def secret(): pass\n")
    return root


def read(root: Path, home: Path, arguments: str) -> tuple[int, str]:
    done = ollm("tools", "run", "read_file", "--args", arguments, home=home, cwd=root)
    return done.returncode, done.stdout + done.stderr


def test_a_symbol_alone_is_found_in_the_workspace(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    assert read(root, tmp_path / "home", '{"symbol": "Turn.run"}') == (
        0,
        "[src/a.py, lines 2 to 3]\n    def run(self):\n        return 1\n",
    )


def test_a_symbol_in_several_files_is_not_guessed(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    code, said = read(root, tmp_path / "home", '{"path": "src", "symbol": "run"}')

    assert code == 1
    assert "run is defined in src/a.py (line 2), src/b.py (line 2). Say which with path." in said


def test_a_symbol_of_nobody_and_one_in_a_private_file(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    for name in ("nobody", "secret"):
        code, said = read(root, tmp_path / "home", f'{{"symbol": "{name}"}}')
        assert code == 1
        assert f"No file in . defines {name}. Search for it with grep." in said


def test_without_a_symbol_a_path_is_still_needed(tmp_path: Path) -> None:
    code, said = read(plant(tmp_path / "project"), tmp_path / "home", "{}")

    assert code == 1
    assert "path" in said
