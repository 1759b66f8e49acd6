"""The HTTP exchange: connections, time-outs, limits, and lines out of chunks cut anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ollm.system import http
from tests.servers import Answer, OllamaServer, ScriptedServer

QUICK = http.Timeouts(connect=1, first=2, stall=2)


async def test_connections_are_kept_and_used_again() -> None:
    async with OllamaServer() as server:
        client = http.open_client(server.base_url, timeouts=QUICK)
        for _ in range(5):
            await client.fetch("GET", "/api/version")
        await client.close()

    assert server.connections == 1


async def test_a_redirect_is_handed_back_not_followed() -> None:
    raw = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with ScriptedServer([Answer(raw=raw)]) as server:
        answer = await http.open_client(server.base_url, timeouts=QUICK).fetch("POST", "/v1/chat/completions", b"{}")

    assert answer.status == 302


def test_a_plain_server_needs_neither_httpx_nor_pydantic_nor_stamina() -> None:
    script = """if True:
        import asyncio, sys
        from tests.providers.conftest import ask, openai, said
        for name in [name for name in sys.modules if name.startswith(("_pytest", "pytest", "hypothesis"))]:
            del sys.modules[name]
        from tests.servers import ScriptedServer
        async def main():
            async with ScriptedServer(["ok"]) as server:
                await said(openai(server.base_url))
        asyncio.run(main())
        heavy = {"pydantic", "httpx2", "httpx", "stamina", "tenacity", "anyio", "click", "rich", "xllamacpp"}
        print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
    """
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"
