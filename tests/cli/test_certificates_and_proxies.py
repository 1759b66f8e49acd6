"""Servers behind TLS and behind a proxy, spoken to by the command itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.running import running
from tests.servers.certificates import self_signed
from tests.servers.handled import serve_with

NOBODY = "http://127.0.0.1:9"


async def test_a_certificate_nobody_vouches_for_is_refused_with_the_way_out(tmp_path: Path) -> None:
    _, context = self_signed(tmp_path)
    async with running(tmp_path, ["Hi."], tls=context) as runner:
        done = await runner.run("-p", "hi")

    assert done.code == 3
    assert "has a certificate that is not trusted (self-signed certificate)" in done.err
    assert "SSL_CERT_FILE" in done.err
    assert runner.server.chats == []


async def test_a_certificate_named_in_the_environment_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, context = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(shown))
    monkeypatch.setenv("HTTPS_PROXY", NOBODY)  # not asked: the server is on this machine
    async with running(tmp_path, ["Hi."], tls=context) as runner:
        done = await runner.run("-p", "hi")

    assert (done.code, done.out) == (0, "Hi.\n")


async def test_a_certificate_for_another_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, context = self_signed(tmp_path, "127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(shown))
    async with running(tmp_path, ["Hi."], tls=context) as runner:
        done = await runner.run("-p", "hi")

    assert done.code == 3
    assert "not trusted (IP address mismatch" in done.err


async def test_no_proxy_stands_between_us_and_a_server_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", NOBODY)
    async with running(tmp_path, ["Hi."]) as runner:
        done = await runner.run("-p", "hi")

    assert (done.code, done.out) == (0, "Hi.\n")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_server_elsewhere_is_reached_by_the_proxy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, ["Hi."]) as runner, forwarding(runner.server.port) as (proxy, asked):
        monkeypatch.setenv(name, proxy)
        monkeypatch.delenv("NO_PROXY", raising=False)
        done = await runner.run("-p", "hi", "--base-url", "http://models.invalid/v1")

    assert (done.code, done.out) == (0, "Hi.\n")
    assert "POST http://models.invalid/v1/chat/completions HTTP/1.1" in asked


async def test_what_no_proxy_lists_is_asked_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, ["Hi."]) as runner, forwarding(runner.server.port) as (proxy, asked):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        done = await runner.run("-p", "hi", "--base-url", "http://models.invalid/v1")

    assert done.code == 3
    assert asked == []


@asynccontextmanager
async def forwarding(port: int) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that takes everybody to one server; its address, and the first lines of what it was asked."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", port)
        back = asyncio.create_task(pass_on(there, writer))
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, _, rest = head.partition(b"\r\n")
                asked.append(first.decode())
                method, target, version = first.split(b" ")
                length = [line for line in rest.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(length[0].partition(b":")[2]) if length else 0)
                path = b"/" + target.split(b"/", 3)[3]
                here.write(b" ".join((method, path, version)) + b"\r\n" + rest + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            back.cancel()
            here.close()
            writer.close()

    async with serve_with(serve) as own_port:
        yield f"http://127.0.0.1:{own_port}", asked


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
