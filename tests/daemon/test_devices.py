"""Pages on other devices: the daemon behind a proxy, pairing, what a device may do."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.running import Daemon, daemon
from tests.servers.openai import ScriptedServer

PUBLIC = "https://box.example.ts.net"
HOST = PUBLIC.removeprefix("https://")
JSON = {"content-type": "application/json"}


def configure(home: Path, **settings: Any) -> int:
    """Write the user's own file; returns the fixed port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (home / ".ollm").mkdir(mode=0o700, exist_ok=True)
    (home / ".ollm" / "config.yaml").write_text(json.dumps({"daemon": {"publicUrl": PUBLIC, "port": port, **settings}}))
    return port


async def test_the_public_name_is_accepted_beside_loopback_and_no_other(tmp_path: Path) -> None:
    port = configure(tmp_path)
    async with daemon(tmp_path) as found:
        url = f"http://127.0.0.1:{port}"
        bearer = {"authorization": f"Bearer {(found.home / 'run' / 'token').read_text()}"}

        async def ask(path: str = "/health", **headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await found.ask("GET", path, url=url, headers={**bearer, **named})).status

        assert await ask() == await ask(host=HOST) == await ask(host=HOST.upper()) == 200
        assert await ask("/", host=HOST, origin=PUBLIC, sec_fetch_site="same-origin") == 200
        others = ("evil.example", f"{HOST}.evil.example", f"evil.{HOST}", f"{HOST}:{port}", f"{HOST}.", "10.0.0.1", "")
        for host in (*others, f"{HOST}@evil", f"{HOST}:443", "127.0.0.1", "0.0.0.0:1", f"127.0.0.1.nip.io:{port}"):
            assert await ask(host=host) == 403, host
            assert await ask("/", host=host) == 403, host
            assert await ask(host=host, x_forwarded_host=HOST, forwarded=f"host={HOST}") == 403, host
        for origin in ("https://evil.example", "null", f"http://{HOST}", f"{PUBLIC}:8443", f"{PUBLIC}.evil", url):
            assert await ask("/", host=HOST, origin=origin) == 403, origin
        assert await ask("/", origin=PUBLIC) == 403, "the origin of another host"
        assert await ask("/", host=HOST, sec_fetch_site="same-site") == 403
        assert (await found.ask("GET", "/health", url=url, headers={"host": HOST})).status == 401


async def test_a_fixed_port_that_is_taken_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    port = configure(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        async with ScriptedServer() as server:
            with pytest.raises(AssertionError, match="the daemon ended"):
                await Daemon(tmp_path, server).start()
    assert f"Port {port} (daemon.port) is taken by another program." in capfd.readouterr().err


@pytest.mark.parametrize("bad", ["http://box.example", f"{PUBLIC}/path", "https://u@box", "ftp://box", "https://"])
async def test_only_https_and_only_an_origin_is_a_public_address(tmp_path: Path, bad: str) -> None:
    port = configure(tmp_path, publicUrl=bad)
    async with daemon(tmp_path) as found:
        host = bad.partition("://")[2]
        assert (await found.ask("GET", "/", url=f"http://127.0.0.1:{port}", headers={"host": host})).status == 403
        assert (await found.ask("GET", "/", url=f"http://127.0.0.1:{port}")).status == 200
