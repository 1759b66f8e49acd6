"""Logins whose secrets are in a keyring: a stand-in for the package `keyring`, which not every machine has."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli.running import Runner, running
from tests.extensions.mcp.test_login import CALL, log_in
from tests.extensions.raw_servers import configure
from tests.servers.oauth_mcp import serve_oauth_mcp

STAND_IN = """
import json, pathlib
PLACE = pathlib.Path(__file__).with_name("secrets.json")
class Backend:
    priority = PRIORITY
def get_keyring():
    return Backend()
def _read():
    return json.loads(PLACE.read_text()) if PLACE.exists() else {}
def get_password(service, name):
    return _read().get(service + "/" + name)
def set_password(service, name, secret):
    PLACE.write_text(json.dumps({**_read(), service + "/" + name: secret}))
def delete_password(service, name):
    PLACE.write_text(json.dumps({key: value for key, value in _read().items() if key != service + "/" + name}))
"""


def install_stand_in(directory: Path, priority: int) -> Path:
    """A package `keyring`; the file its secrets are in."""
    package = directory / "packages" / "keyring"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN.replace("PRIORITY", str(priority)))
    return package / "secrets.json"


def add_packages(runner: Runner, directory: Path) -> None:
    paths = os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**runner.environment(), "PYTHONPATH": paths}
    runner.environment = lambda: environment  # type: ignore[method-assign]


async def test_a_login_is_in_the_keyring_and_in_no_file_of_ours(tmp_path: Path) -> None:
    secrets = install_stand_in(tmp_path, priority=5)
    with serve_oauth_mcp() as safe:
        async with running(tmp_path, [CALL, "Ada."]) as runner:
            configure(runner, mcpServers={"safe": {"url": safe.url}})
            add_packages(runner, secrets.parents[1])
            assert (await log_in(runner)).code == 0
            (token,) = safe.valid
            kept = runner.home / "mcp-logins.json"
            assert token in secrets.read_text()
            assert token not in kept.read_text()

            process = await runner.start("-p", "who am I?", "--yes")
            said = await process.communicate()
            assert "you are Ada" in str(runner.server.chats[-1]["messages"][-1]), said

            process = await runner.start("mcp", "logout", "safe")
            assert (await process.communicate())[0] == b"Forgot the login at safe.\n"
    assert json.loads(secrets.read_text()) == {}
    assert json.loads(kept.read_text()) == {}


async def test_a_package_without_a_keyring_behind_it_leaves_the_file(tmp_path: Path) -> None:
    secrets = install_stand_in(tmp_path, priority=0)
    with serve_oauth_mcp() as safe:
        async with running(tmp_path, []) as runner:
            configure(runner, mcpServers={"safe": {"url": safe.url}})
            add_packages(runner, secrets.parents[1])
            assert (await log_in(runner)).code == 0
            (token,) = safe.valid
            assert token in (runner.home / "mcp-logins.json").read_text()
    assert not secrets.exists()
