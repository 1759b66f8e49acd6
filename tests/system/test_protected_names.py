"""The one list of protected files."""

from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.system.paths import Boundary, KnownDirectories, explain_read_protection, explain_write_protection

HOME = Path("/home/me")
PLACES = KnownDirectories(user_home=HOME, ollm_home=HOME / ".ollm", roots=(Path("/work"),))


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git",
        "sub/.GIT/hooks/x",
        ".g\u200bit/config",
        ".git./config",
        ".ollm/config.yaml",
        ".Ollm/commands/x.md",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        "sub/AGENTS.md",
        ".github/workflows/ci.yml",
        ".gitattributes",
        ".cursor/rules",
        ".env",
        ".env.local",
        ".ENV.production",
        ".env.example",
        ".envrc",
        "deep/down/.env",
        ".bashrc",
        ".zshenv",
        "dotfiles/.profile",
        "fish/conf.d/x.fish",
        ".config/fish/config.fish",
        "/home/me/.ssh/authorized_keys",
        "/home/me/.SSH/config",
        "/home/me/.ollm/grants.yaml",
    ],
)
def test_writing_is_protected(path: str) -> None:
    assert explain_write_protection(Path("/work") / path, PLACES)


@pytest.mark.parametrize(
    "path",
    [
        ".gitignore",
        ".github/CODEOWNERS",
        "git/config",
        "env",
        "environment.py",
        "my.env",
        ".editorconfig",
        "src/bashrc",
        "conf.d/site.conf",
        "/home/me/ssh/x",
        ".ollmignore",
        "…",
        "...",
    ],
)
def test_writing_elsewhere_is_not(path: str) -> None:
    assert explain_write_protection(Path("/work") / path, PLACES) is None


@pytest.mark.parametrize(
    ("path", "asks"),
    [
        (".env", True),
        (".Env.Local", True),
        ("a/.env.production", True),
        ("/home/me/.ssh/id_ed25519", True),
        ("/home/me/.ollm/config.yaml", True),
        (".env.example", False),
        (".env.sample", False),
        (".env.local.TEMPLATE", False),
        (".git/config", False),
        (".vscode/settings.json", False),
        (".bashrc", False),
        (".ollm/commands/x.md", False),
    ],
)
def test_reading_asks_for_secrets_only(path: str, asks: bool) -> None:
    assert (explain_read_protection(Path("/work") / path, PLACES) is not None) is asks


def test_a_workspace_inside_the_agents_directory_is_a_workspace() -> None:
    places = KnownDirectories(ollm_home=Path("/data"), roots=(Path("/data/project"),))

    assert explain_write_protection(Path("/data/project/x.py"), places) is None
    assert explain_write_protection(Path("/data/config.yaml"), places)
    assert explain_write_protection(Path("/data/x"), KnownDirectories(ollm_home=Path("/data"), roots=(Path("/data"),)))


def test_a_link_to_a_protected_file_is_protected_and_so_is_a_protected_link(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes").symlink_to(".env")
    (tmp_path / "plain").write_text("x")
    (tmp_path / ".env.link").symlink_to("plain")
    boundary = Boundary.around(tmp_path)

    for path in ("notes", ".env.link"):
        with pytest.raises(ToolFailure) as error:
            boundary.open_file(path)
        assert error.value.kind == "Denied"
        with pytest.raises(ToolFailure):
            boundary.write_file(path, b"")
    with boundary.approve_paths([tmp_path / ".env"]).open_file("notes") as file:
        assert file.read() == b"KEY=1"
