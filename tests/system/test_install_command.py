"""How an extra is added, by the way ollm was installed."""

from pathlib import Path

import pytest

from ollm.system.install_command import describe_extra_install


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("uv-receipt.toml", "uv tool install --force '/src/ollm[all]'"),
        ("pipx_metadata.json", "pipx install --force '/src/ollm[all]'"),
        ("pyvenv.cfg", "pip install '/src/ollm[mcp]'"),
    ],
)
def test_the_installer_that_was_used_is_the_one_to_use(tmp_path: Path, mark: str, command: str) -> None:
    (tmp_path / mark).write_text("")

    assert describe_extra_install("mcp", tmp_path, "/src/ollm") == command


def test_the_archive_is_not_part_of_all(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text("")

    assert describe_extra_install("postgres", tmp_path, "x") == "uv tool install --force 'x[all,postgres]'"
    (tmp_path / "lib/python3.11/site-packages/psycopg").mkdir(parents=True)
    assert describe_extra_install("mcp", tmp_path, "x") == "uv tool install --force 'x[all,postgres]'"


def test_no_name_is_given_that_anybody_could_take(tmp_path: Path) -> None:
    assert describe_extra_install("mcp", tmp_path, "") == "reinstall ollm with the extra [mcp] from its original source"
