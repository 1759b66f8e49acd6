"""The port on 127.0.0.1."""

import json
import signal
import threading
from pathlib import Path

from ollm.daemon.server import OWN_PORTS, bind_tcp
from tests.daemon.running import daemon


def test_a_port_that_is_taken_is_given_up() -> None:
    with bind_tcp() as first:
        first.listen()
        with bind_tcp(first.getsockname()[1]) as second:
            assert second.getsockname()[1] != first.getsockname()[1]
            assert {first.getsockname()[1], second.getsockname()[1]} <= set(OWN_PORTS)


def test_a_port_that_is_about_to_be_free_is_waited_for() -> None:
    first = bind_tcp()
    first.listen()
    wanted = first.getsockname()[1]
    freeing = threading.Timer(0.3, first.close)
    freeing.start()
    with bind_tcp(wanted, 60) as second:
        assert second.getsockname()[1] == wanted
    freeing.join()


async def test_a_killed_daemon_comes_back_at_its_port_and_a_stopped_one_logs_all_pages_out(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        url = (await found.ask("POST", "/web/ticket")).json["url"].partition("/#")[0]
        ticket = (await found.ask("POST", "/web/ticket")).json["url"].partition("=")[2]
        own = {"origin": url, "content-type": "application/json"}
        reply = await found.ask("POST", "/web/login", {"ticket": ticket}, url=url, headers=own)
        page = {"cookie": reply.headers["set-cookie"].partition(";")[0], "x-ollm-page": reply.json["token"]}
        assert (await found.ask("GET", "/health", url=url, headers=page)).status == 200

        await found.end(signal.SIGKILL)
        await found.start()
        assert (await found.ask("GET", "/health", url=url, headers=page)).status == 200

        await found.end(signal.SIGTERM)
        await found.start()
        assert json.loads((found.home / "run" / "daemon.pid").read_text())["port"] is None, "nobody waits for it"
        await found.end(signal.SIGTERM)
        await found.start("--tcp")
        port = json.loads((found.home / "run" / "daemon.pid").read_text())["port"]  # another one, if somebody took it
        assert (await found.ask("GET", "/health", url=f"http://127.0.0.1:{port}", headers=page)).status == 401
