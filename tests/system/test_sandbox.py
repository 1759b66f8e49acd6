"""What boxed commands can do and cannot, judged by what was changed, read, reached or ended outside."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from ollm.system.sandbox.box import Kind, Level, Network
from tests.ordinary_user import as_ordinary_user
from tests.sizes import SOAK, size
from tests.system.box_escapes import NETWORKED, READING, WORKING
from tests.system.box_world import LEVELS, SECRET, World, find_place

KINDS: tuple[Kind, ...] = ("reading", "working")
PATIENCE_SECONDS = 900  # on a machine that is busy with other things
ATTEMPTS: list[tuple[Kind, Network, dict[str, str]]] = [
    ("reading", "none", READING),
    ("working", "none", WORKING),
    ("working", "all", NETWORKED),
]


def attempt_all(root: Path, level: Level, every: int = 1) -> None:
    """With `every`, one line in so many."""
    world = World(root, level)
    broken = []
    try:
        for kind, network, lines in ATTEMPTS:
            for name, line in list(lines.items())[::every]:
                output = world.run(line, kind, network)
                broken += [f"{kind}, network {network}: {name}: {fault}" for fault in world.judge(output, kind)]
                world.restore_workspace()
    finally:
        world.close()
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("level", LEVELS)
def test_no_way_out_as_an_ordinary_user(level: Level) -> None:
    every = {"full": 1, "landlock": size(3, 1), "bubblewrap": size(8, 1)}[level]  # which are slower, and hold the same
    as_ordinary_user(lambda root: attempt_all(root, level, every), seconds=PATIENCE_SECONDS, within=find_place(level))


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.skipif(os.geteuid() != 0, reason="this is about root")
@pytest.mark.parametrize("level", LEVELS)
def test_no_way_out_as_root(level: Level) -> None:
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="ollm-box-") as root:
        attempt_all(Path(root), level)


SECRET_PLACES = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".gradle/gradle.properties",
    ".m2/settings.xml",
    ".gem/credentials",
    ".bundle/config",
    ".config/gh/hosts.yml",
    ".config/pip/pip.conf",
    ".config/hcloud/cli.toml",
    ".config/io.datasette.llm/keys.json",
    ".config/goose/secrets.yaml",
    ".config/Code/User/globalStorage/state.db",
    ".local/share/opencode/auth.json",
    ".local/share/uv/credentials",
    ".local/share/keyrings/login.keyring",
    ".local/state/x/token",
    ".cache/huggingface/token",
    ".claude.json",
    ".modal.toml",
    ".vast_api_key",
    ".kube/config",
    ".docker/config.json",
    ".gitconfig",
    ".git-credentials",
    ".config/git/credentials",
    ".ollm/mcp-logins.json",
    ".android/adbkey",
    ".mozilla/firefox/p/logins.json",
    ".Xauthority",
    ".bash_history",
    "Passwords.kdbx",
    "notes/secret.txt",
    "Documents/tax.pdf",
    ".unheard-of/deep/er/key",
    ".rustup/token",
    ".nvm/token",
    ".pyenv/token",
    ".foundry/keystores/k",
    ".fly/config.yml",
    "go/token",
    ".bun/token",
    ".volta/token",
    ".sdkman/etc/token",
    ".nvm/versions/node/v1/etc/npmrc",
    ".pyenv/versions/3.1/pip.conf",
    ".pyenv/versions/3.1/envs/e/pip.conf",
    ".pyenv/plugins/p/.git/config",
    ".pyenv/plugins/p/etc/login",
    ".rustup/toolchains/t/credentials",
    ".sdkman/candidates/maven/3/conf/settings.xml",
    ".volta/tools/image/node/20/etc/npmrc",
    ".local/share/mise/installs/node/20/etc/npmrc",
    ".local/share/pipx/venvs/t/pip.conf",
    ".local/share/uv/tools/t/uv-receipt.toml",
    ".local/share/pnpm/global/5/.npmrc",
    ".bun/install/global/.npmrc",
    ".local/bin/.npmrc",
    ".local/bin/login.json",
    ".local/lib/login",
    ".cargo/git/db/a/config",
    ".cache/uv/git-v0/db/a/config",
    ".cache/pre-commit/r/.git/config",
    "go/pkg/mod/cache/vcs/a/config",
    "tools/program/.netrc",
    "tools/program/etc/login",
    "tools/program/src/login",
    "go/bin/.netrc",
    "go/src/private/.env",
    "go/pkg/private",
    "code/project/.git/config",
    "code/project/bin/.env",
    "code/project/lib/login",
    "code/scripts/login",
    ".pyenv/shims/login",
    ".nix-profile/etc/login",
    "apps/linked/etc/login",
    ".loose/login",
]
# Programs and libraries beside them
SHOWN_PLACES = [
    ".cargo/bin/tool",
    ".local/bin/tool",
    ".local/lib/python/module.py",
    ".nvm/versions/node/v1/bin/node",
    ".pyenv/versions/3.1/lib/module.py",
    ".pyenv/versions/3.1/envs/e/pyvenv.cfg",
    ".pyenv/plugins/p/bin/tool",
    ".pyenv/plugins/p/etc/pyenv.d/which/hook.bash",
    ".rustup/toolchains/t/lib/library",
    ".sdkman/candidates/maven/3/bin/m2.conf",
    ".sdkman/candidates/maven/3/boot/jar",
    ".local/share/pipx/venvs/t/bin/tool",
    ".local/share/uv/tools/t/lib/module.py",
    ".local/share/pnpm/global/5/node_modules/.bin/tool",
    ".bun/install/global/node_modules/.bin/tool",
    ".volta/tools/image/node/20/lib/x.js",
    "go/pkg/mod/example.org/module/x.go",
    "tools/program/bin/tool",
    "tools/program/lib/module.py",
    "go/bin/tool",
    "code/project/bin/tool",
    "code/scripts/tool",
    ".pyenv/bin/tool",
    ".pyenv/shims/tool",
    ".nix-profile/bin/tool",
    "apps/linked/bin/tool",
    "apps/linked/lib/module.py",
    ".loose/tool",
]


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_of_a_home_can_be_read_that_is_not_on_the_allow_list(level: Level) -> None:
    def body(root: Path) -> None:
        for name in [*SECRET_PLACES, *(f"folder-{number}/.hidden-{number}" for number in range(250)), *SHOWN_PLACES]:
            file = root / "home" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("shown\n" if name in SHOWN_PLACES else SECRET)
            file.chmod(0o755 if file.name == "tool" else 0o644)
        (root / "home/code/scripts/linked").symlink_to("../../apps/linked/bin/tool")
        (root / "home/code/scripts/loose").symlink_to(root / "home/.loose/tool")
        (root / "kept").mkdir()
        (root / "kept/token").write_text(SECRET)
        (root / "home/.linked").symlink_to(root / "home/.ssh")
        (root / "kept/home").symlink_to(root / "home")
        careless = [root / name for name in ("home", "home/.ssh/..", "kept/home", "home/.ssh", "home/.config")]
        found = ("tools/program/bin", "go/bin", "code/project/bin", "code/scripts")
        careless += [root / "home" / name for name in found]
        os.environ["PATH"] = ":".join(map(str, (*careless, os.environ["PATH"])))
        world = World(root, level)
        try:
            names = " ".join(f"~/{name}" for name in (*SECRET_PLACES, ".linked/id_ed25519"))
            for kind in KINDS:
                said = world.run(f"cat {names}; grep -r . ~ 2>/dev/null; find ~ -type f -exec cat {{}} +", kind)
                assert SECRET not in said, kind
                shown = world.run("cat " + " ".join(f"~/{name}" for name in SHOWN_PLACES), kind)
                assert shown.count("shown") == len(SHOWN_PLACES), shown
        finally:
            world.close()

    as_ordinary_user(body, within=find_place(level))


def test_there_are_at_least_forty_attempts_in_each_box() -> None:
    assert all(len(lines) >= 40 for lines in (READING, WORKING))


def test_the_judge_sees_what_was_done() -> None:
    """The same lines without a box do harm, so that a world that is never harmed proves something."""

    def body(root: Path) -> None:
        world = World(root, "landlock")
        try:
            for line in ("echo x > $O/file", "cat ~/.ssh/id_rsa", "echo x > .git/config"):
                command = ["/bin/bash", "-c", line]
                places = {**os.environ, "HOME": str(world.home), "O": str(world.outside)}
                done = subprocess.run(
                    command, cwd=world.workspace, env=places, capture_output=True, text=True, check=False
                )
                assert world.judge(done.stdout, "working"), line
        finally:
            world.close()

    as_ordinary_user(body)
