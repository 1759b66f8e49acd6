"""The folder extensions are kept in."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ollm.domain.errors import NotFoundError, UsageError
from ollm.extensions import install
from ollm.extensions.install import install_extension, remove_extension
from tests.cli.running import running


def extension(folder: Path, adds: dict[str, Any], **modules: str) -> Path:
    folder.mkdir(parents=True)
    manifest = {"name": folder.name, "version": "1", "description": "For a test.", "adds": adds}
    (folder / "extension.yaml").write_text(json.dumps(manifest))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text))
    return folder


def test_links_are_not_copied(tmp_path: Path) -> None:
    source = extension(tmp_path / "linked", {"tools": {"x": "m:X"}}, m="")
    (source / "secret").symlink_to("/etc/passwd")

    with pytest.raises(UsageError, match="link or a special file"):
        install_extension(source, tmp_path / "home", replace=False)
    assert not (tmp_path / "home").exists()


def make(folder: Path, name: str = "mine", version: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "extension.yaml").write_text(f"name: {name}\nversion: {version}\nadds: {{tools: {{t: 'code:T'}}}}\n")
    (folder / "code.py").write_text("x = 1\n")
    return folder


def test_an_extension_is_copied_without_what_does_not_belong_to_it(tmp_path: Path) -> None:
    source = make(tmp_path / "source")
    for name in (".git", "__pycache__", ".venv"):
        (source / name).mkdir()
        (source / name / "big").write_text("x")
    (source / "a.pyc").write_text("x")
    target = install_extension(source, tmp_path / "home", replace=False)

    assert target == tmp_path / "home" / "mine"
    assert sorted(path.name for path in target.iterdir()) == ["code.py", "extension.yaml"]
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["mine"]


def test_one_that_is_there_is_replaced_only_when_wanted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    install_extension(make(tmp_path / "one"), home, replace=False)
    (home / "mine" / "old.py").touch()
    second = make(tmp_path / "two", version=2)
    with pytest.raises(UsageError, match="An extension named mine already exists") as found:
        install_extension(second, home, replace=False)
    assert found.value.action == "Use --force to replace it."
    install_extension(second, home, replace=True)

    assert not (home / "mine" / "old.py").exists()
    assert "version: 2" in (home / "mine" / "extension.yaml").read_text()


def test_too_many_files_or_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make(tmp_path / "source")
    monkeypatch.setattr(install, "MAX_FILES", 2)
    install_extension(source, tmp_path / "home", replace=False)
    (source / "third.py").touch()
    with pytest.raises(UsageError, match="is too large: at most 2 files and 20 MiB"):
        install_extension(source, tmp_path / "other", replace=False)
    assert not (tmp_path / "other").exists()
    monkeypatch.setattr(install, "MAX_FILES", 2000)
    with (source / "third.py").open("wb") as file:
        file.truncate(21 * 1024 * 1024)
    with pytest.raises(UsageError, match="too large"):
        install_extension(source, tmp_path / "other", replace=False)


@pytest.mark.parametrize("name", ["gone", "../outside", "mine/..", ""])
def test_only_an_extension_can_be_removed(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    make(tmp_path / "outside", "outside")
    make(home / "mine")
    with pytest.raises(NotFoundError, match="No extension named"):
        remove_extension(name, home)
    assert remove_extension("mine", home) == home / "mine"
    assert list(home.iterdir()) == []
    assert (tmp_path / "outside").exists()


@pytest.mark.parametrize(("modules", "said"), [({}, "no module m"), ({"m": "def broken("}, "m.py cannot be loaded")])
async def test_one_that_could_never_be_loaded_is_not_added(tmp_path: Path, modules: dict[str, str], said: str) -> None:
    source = extension(tmp_path / "bad", {"tools": {"whisper": "m:Whisper"}}, **modules)
    async with running(tmp_path, []) as runner:
        done = await runner.run("extensions", "add", str(source), "--yes")
        listed = await runner.run("extensions", "list", "--json")

    assert done.code == 2
    assert said in done.err
    assert json.loads(listed.out) == []
    assert not (runner.home / "extensions" / "bad").exists()
    assert not (runner.home / "config.yaml").exists()
