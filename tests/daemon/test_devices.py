"""Pages on other devices: the daemon behind a proxy, pairing, what a device may do."""

import asyncio
import json
import re
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.running import WRITE, Daemon, Reply, daemon
from tests.servers.answers import Answer
from tests.servers.certificates import self_signed
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

        assert await ask() == 200
        assert await ask(host=HOST) == await ask(host=HOST.upper()) == 401, "the token is for this machine"
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


class Phone:
    """A paired device behind a proxy: what it sends comes from 127.0.0.1 with the public name."""

    def __init__(self, found: Daemon, port: int) -> None:
        self.found, self.url = found, f"http://127.0.0.1:{port}"
        self.headers = {"host": HOST, "origin": PUBLIC, "sec-fetch-site": "same-origin"}
        self.flags = ""

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        given = {**self.headers, **({} if body is None else JSON), **headers}
        return await self.found.ask(method, path, body, url=self.url, headers=given)

    async def pair(self, code: str = "", **rights: Any) -> Reply:
        if not code:
            made = await self.found.ask("POST", "/web/codes", rights)
            assert made.status == 201, made.body
            code = made.json["code"]
        agent = "Mozilla/5.0 (iPhone) Mobile/15E148"
        reply = await self.ask(
            "POST", "/web/pair", {"code": code}, **{"user-agent": agent, "x-forwarded-for": "10.0.0.7"}
        )
        if reply.status == 200:
            self.flags = reply.headers["set-cookie"]
            self.headers["cookie"] = self.flags.partition(";")[0]
        return reply


async def test_a_code_pairs_one_device_whose_key_is_kept_until_it_is_revoked(tmp_path: Path) -> None:
    port = configure(tmp_path)
    async with daemon(tmp_path, ["hi"]) as found:
        phone, other = Phone(found, port), Phone(found, port)
        made = (await found.ask("POST", "/web/codes", {})).json
        assert made["url"] == f"{PUBLIC}/#pair={made['code']}"
        for headers in ({"origin": "https://evil.example"}, {"host": f"127.0.0.1:{port}"}):
            assert (await phone.ask("POST", "/web/pair", {"code": made["code"]}, **headers)).status == 403
        reply = await phone.pair(made["code"].lower().replace("-", " "))
        assert (reply.status, reply.json["name"]) == (200, "phone")
        parts = {part.strip().lower() for part in phone.flags.split(";")}
        assert {"secure", "httponly", "samesite=strict", "path=/", "max-age=2592000"} <= parts
        assert phone.flags.startswith("__Host-")
        assert "domain" not in phone.flags.lower()
        assert (await other.pair(made["code"])).status == 401, "it works once"
        assert (await other.pair(name="kitchen")).json["name"] == "kitchen"
        assert (await Phone(found, port).pair()).json["name"] == "phone 2"

        assert (await phone.ask("GET", "/sessions")).status == 200
        assert (await phone.ask("GET", "/web/device")).headers["set-cookie"] == phone.flags, "its use renews it"
        wrong = {"cookie": phone.headers["cookie"][:-1] + "~"}
        for headers in (wrong, {"cookie": ""}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert (await phone.ask("GET", "/sessions", **headers)).status in (401, 403)
        assert (await phone.ask("GET", "/sessions", host=f"127.0.0.1:{port}", origin=phone.url)).status == 403
        loopback = {"host": f"127.0.0.1:{port}", "cookie": phone.headers["cookie"]}
        assert (await found.ask("GET", "/sessions", url=phone.url, headers=loopback)).status == 401

        await found.end()
        kept = (found.home / "run" / "web.json").read_text()
        assert phone.headers["cookie"].partition("=")[2] not in kept
        await found.start()
        assert (await phone.ask("GET", "/sessions")).status == 200, "it stays paired"

        shown = await run_web(found, "devices")
        assert [line.split()[0] for line in shown.splitlines()[1:]] == ["phone", "kitchen", "phone"]
        assert "10.0.0.7" in shown
        assert await run_web(found, "devices", "revoke", "kitchen") == "Revoked kitchen.\n"
        assert (await other.ask("GET", "/sessions")).status == 401
        third = Phone(found, port)
        await third.pair()
        assert (await third.ask("POST", "/web/logout")).status == 200
        assert (await third.ask("GET", "/sessions")).status == 401
        session = await found.open()
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            body = json.dumps({"title": "by a revoked phone"}).encode()
            given = {**phone.headers, "content-type": "application/json", "content-length": str(len(body))}
            head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
            writer.write(f"PATCH /sessions/{session} HTTP/1.1\r\n{head}\r\n".encode() + body[:5])
            events = asyncio.create_task(phone.ask("GET", "/events"))
            await asyncio.sleep(0.2)
            await run_web(found, "devices", "revoke", "--all")
            writer.write(body[5:])
            assert b"200" not in await reader.readline(), "a request that had begun does nothing"
            writer.close()
            await found.say(session, "are you there?")
            assert b"are you there" not in (await events).body, "an open stream ends"
        assert (await found.ask("GET", f"/sessions/{session}")).json["metadata"]["title"] != "by a revoked phone"
        assert (await phone.ask("GET", "/sessions")).status == 401
        assert "No paired devices" in await run_web(found, "devices")


async def run_web(found: Daemon, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ollm", "web", *words), env=found.environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def test_the_command_prints_the_code_and_draws_it(tmp_path: Path) -> None:
    port = configure(tmp_path)
    async with daemon(tmp_path) as found:
        *drawing, url, code = (await run_web(found, "--pair", "--name", "my phone", "--read-only")).splitlines()
        assert url == f"{PUBLIC}/#pair={code}"
        assert "▄" in "".join(drawing)
        assert (await Phone(found, port).pair(code)).json == {"name": "my phone", "readOnly": True, "noGrants": False}


async def test_codes_cannot_be_guessed(tmp_path: Path) -> None:
    port = configure(tmp_path)
    async with daemon(tmp_path) as found:
        phone = Phone(found, port)
        for _ in range(30):
            assert (await phone.pair("AAAA-AAAA")).status == 401, "no code waits: nothing to guess"
        for _ in range(4):
            code = (await found.ask("POST", "/web/codes", {})).json["code"]
            for _ in range(5):
                assert (await phone.pair("AAAA-AAAA")).status == 401
            assert (await phone.pair(code)).status in (401, 403), "void after five"
        refused = await found.ask("POST", "/web/codes", {})
        assert (refused.status, refused.json["detail"]) == (403, "Too many wrong codes in the last hour.")
        statuses = {(await phone.pair(f"AAAA-{number:04}")).status for number in range(300)}
        assert statuses == {403}


def assert_local(refused: Any) -> None:
    assert refused.status == 403
    words = "Protected files, and commands outside the sandbox, are approved on the machine itself"
    assert refused.json["detail"].startswith(words)


async def test_what_a_device_may_do_follows_from_its_key(tmp_path: Path) -> None:
    port = configure(tmp_path)
    shell = Answer(calls=[("shell", {"command": "touch x", "outside": True, "why": "so"})])
    again = Answer(calls=[("write_file", {"path": "other.txt", "content": "x"})])
    token = Answer(calls=[("read_file", {"path": str(tmp_path / ".ollm/run/token")})])
    async with daemon(tmp_path, [WRITE, "done", again, "done", shell, "done", token, "done"]) as found:
        phone, reader, careful = (Phone(found, port) for _ in range(3))
        await phone.pair()
        await reader.pair(readOnly=True)
        await careful.pair(noGrants=True)
        session = await found.open()
        place = f"/sessions/{session}"

        for path in ("/web/ticket", "/web/codes", "/web//codes", "/web/%63odes"):
            assert (await phone.ask("POST", path, {})).status in (403, 404), path
        assert (await phone.ask("GET", "/web/devices")).status == 403
        assert (await phone.ask("DELETE", "/web/devices")).status == 403
        assert (await phone.ask("POST", f"{place}/shell", {"command": "true"})).status == 403
        own = {"workspacePath": str(found.home / "run")}
        assert (await phone.ask("POST", "/sessions", own)).status == 403
        kept = (await found.ask("POST", "/sessions", own)).json["sessionId"]
        assert (await phone.ask("POST", f"/sessions/{kept}/messages", {"text": "x"})).status == 403
        made = (await found.ask("POST", "/web/ticket")).json["url"].partition("=")[2]
        assert (await phone.ask("POST", "/web/login", {"ticket": made})).status == 403
        for name, words in (("approval", "yolo"), ("/trust", "yes"), ("add-dir", "/"), ("export", "x.md")):
            assert (await phone.ask("POST", f"{place}/commands", {"name": name, "arguments": words})).status == 403, (
                name
            )
        assert (await phone.ask("POST", f"{place}/commands", {"name": "status"})).status == 200

        writes = (("POST", "/sessions", {"workspacePath": "/"}), ("POST", f"{place}/messages", {"text": "x"}))
        more = (("PATCH", place, {"title": "x"}), ("DELETE", place, None), ("DELETE", f"{place}?erase=true", None))
        for method, path, body in (
            *writes,
            *more,
            ("POST", f"{place}/cancel", None),
            ("POST", f"/{place}/cancel", None),
        ):
            lied = {"x-http-method-override": "GET", "x-forwarded-for": "127.0.0.1"}
            refused = await reader.ask(method, path, body, **lied)
            assert (refused.status, refused.json["detail"]) == (403, "phone 2 may only read."), path
        assert (await reader.ask("GET", f"{place}/status")).status == 200
        assert (await reader.ask("POST", "/web/render", {"text": "*x*"})).status == 200

        async def ask_question(who: Phone) -> tuple[str, asyncio.Task[Any]]:
            turn = asyncio.create_task(who.ask("POST", f"{place}/messages", {"text": "write it"}))
            while not turn.done() and not (waiting := (await who.ask("GET", f"{place}/status")).json["questions"]):
                await asyncio.sleep(0.05)
            assert waiting, turn.result()
            return f"{place}/confirmations/{waiting[0]['correlationId']}", turn

        answer, turn = await ask_question(careful)
        for body in ({"scope": "session"}, {"scope": "always"}, {"prefix": True}, {"text": "all edits"}):
            assert (await careful.ask("POST", answer, {"approved": True, **body})).status == 403, body
        assert (await reader.ask("POST", answer, {"approved": True})).status == 403
        assert (await careful.ask("POST", answer, {"approved": True, "device": "me"})).status == 200
        await turn
        answer, turn = await ask_question(phone)
        assert (await phone.ask("POST", answer, {"approved": True, "scope": "session"})).status == 200
        await turn
        answer, turn = await ask_question(phone)
        assert_local(await phone.ask("POST", answer, {"approved": True}))
        assert (await phone.ask("POST", answer, {"approved": False})).status == 200
        await turn
        answer, turn = await ask_question(phone)
        assert_local(await phone.ask("POST", answer, {"approved": True}))
        assert (await phone.ask("POST", answer, {"approved": False})).status == 200
        await turn
        exported = (await found.ask("GET", f"{place}/export?format=markdown")).body.decode()
        senders = re.findall(r"^## \d+\. User from (.*)$", exported, re.MULTILINE)
        assert senders == ["phone 3", "phone", "phone", "phone"], exported
        calls = (await found.ask("GET", place)).json["toolCalls"]
        assert [one["result"]["questions"][0]["answer"].rpartition(", ")[2] for one in calls] == [
            "answered from phone 3",
            "answered from phone",
            "answered from phone",
            "answered from phone",
        ]


async def test_a_device_changes_only_settings_that_give_no_right(tmp_path: Path) -> None:
    port = configure(tmp_path)
    file = tmp_path / ".ollm" / "config.yaml"
    file.write_text(f"daemon:\n  publicUrl: {PUBLIC}\n  port: {port}\n")
    async with daemon(tmp_path) as found:
        phone = Phone(found, port)
        await phone.pair()
        wanted = {"key": "screen.theme", "value": "light"}
        shown = await phone.ask("POST", "/settings", {**wanted, "dryRun": True})
        assert shown.json == {"diff": "-screen.theme: auto\n+screen.theme: light\n"}
        assert "light" not in file.read_text()
        assert (await phone.ask("POST", "/settings", wanted)).status == 200
        assert "light" in file.read_text()
        assert (await phone.ask("POST", "/settings", {"key": "screen.theme", "value": "pink"})).status == 422
        before = file.read_text()
        keys = ("daemon.publicUrl", "policy.approval", "sandbox.mode", "provider.baseUrl")
        for key in (
            *keys,
            "hooks",
            "mcpServers.x",
            "notify.command",
            "models.urls",
            "checks",
            "screen",
            "SCREEN.theme",
        ):
            for value in ("x", None):
                refused = await phone.ask("POST", "/settings", {"key": key, "value": value})
                assert (refused.status, key in refused.json["detail"]) == (403, True), key
        assert file.read_text() == before
        offered = re.compile((await phone.ask("GET", "/settings")).json["changeable"])
        assert [key for key in ("screen.theme", "screen.themes", *keys) if offered.match(key)] == ["screen.theme"]
        secret = await found.ask("POST", "/settings", {"key": "provider.apiKey", "value": "sk-secret"})
        assert "sk-secret" not in secret.body.decode()
        assert (await found.ask("POST", "/settings", {"key": "provider.apiKey", "value": None})).status == 200
        assert (await found.ask("GET", "/settings")).json["settings"]["screen"]["theme"] == "light"


async def test_another_address_is_served_with_tls_alone_and_for_the_public_name_alone(tmp_path: Path) -> None:
    certificate, _ = self_signed(tmp_path)
    trust = ssl.create_default_context(cafile=str(certificate))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    tls = {"cert": str(certificate), "key": str(tmp_path / "key.pem")}
    port = configure(tmp_path, publicUrl=f"https://{listen}", listen=listen, tls=tls)
    async with daemon(tmp_path) as found:

        async def ask(host: str, context: ssl.SSLContext | None, path: str = "/") -> bytes:
            reader, writer = await asyncio.open_connection(*listen.split(":"), ssl=context)
            writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            try:
                return (await reader.read()).partition(b"\r\n")[0]
            except ConnectionError:
                return b""
            finally:
                writer.close()

        assert b"200" in await ask(listen, trust)
        assert b"401" in await ask(listen, trust, "/sessions")
        for host in (f"localhost:{listen.rpartition(':')[2]}", f"127.0.0.1:{port}", "evil.example"):
            assert b"403" in await ask(host, trust), host
        assert b"200" not in await ask(listen, None), "nothing without TLS"
        assert (await found.ask("GET", "/", url=f"http://127.0.0.1:{port}")).status == 200


@pytest.mark.parametrize("more", [{}, {"tls": {"cert": "/nowhere.pem", "key": "/nowhere.key"}}, {"publicUrl": None}])
async def test_no_other_address_is_served_without_tls(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], more: dict[str, Any]
) -> None:
    configure(tmp_path, listen="127.0.0.1:0", **more)
    async with ScriptedServer() as server:
        with pytest.raises(AssertionError, match="the daemon ended"):
            await Daemon(tmp_path, server).start()
    said = capfd.readouterr().err
    assert "daemon.listen needs" in said or "cannot listen on 127.0.0.1:0" in said
