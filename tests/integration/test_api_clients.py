"""Clients that others generate from the API's description drive a session of a real daemon."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemon.browser import get_port
from tests.daemon.running import Daemon, daemon
from tests.integration import packages

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")
UNKNOWN = "11111111-2222-4333-8444-555555555555"

PYTHON = """
import sys, time
from client import AuthenticatedClient
from client.api.default import history, open_session, send_message, session_status, show_session
from client.models import MessageBody, OpenBody, Problem, TurnReply

url, token, folder, unknown = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token) as client:
    session = open_session.sync(client=client, body=OpenBody(workspace_path=folder)).session_id
    reply = send_message.sync(session, client=client, body=MessageBody(text="hello"), prefer="respond-async")
    assert isinstance(reply, TurnReply) and reply.accepted, reply
    while session_status.sync(session, client=client).turn_after is not None:
        time.sleep(0.05)
    said = [(one.role.value, one.parts[0].text) for one in history.sync(session, client=client)]
    assert said == [("user", "hello"), ("assistant", "Hello back.")], said
    missing = show_session.sync_detailed(unknown, client=client)
    assert missing.status_code == 404 and isinstance(missing.parsed, Problem), missing
    assert show_session.sync_detailed("x", client=client).parsed.status == 422
with AuthenticatedClient(base_url=url, token="wrong") as client:
    assert show_session.sync_detailed(session, client=client).parsed.status == 401
"""

TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };
const [url, token, folder, unknown] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
type Event = components["schemas"]["TextDelta"] | components["schemas"]["TurnFinished"];
const opened = await client.POST("/sessions", { body: { workspacePath: folder } });
const path = { session_id: opened.data!.sessionId };
const turn = await client.POST("/sessions/{session_id}/messages", { params: { path }, body: { text: "hello" }, parseAs: "stream" });
const text = await new Response(turn.data as unknown as ReadableStream).text();
const events = text.split("\\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)) as Event);
const said = events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
if (said !== "Hello back." || events.at(-1)!.type !== "turn-finished") throw new Error(text);
const missing = await client.GET("/sessions/{session_id}", { params: { path: { session_id: unknown } } });
if (missing.error!.status !== 404 || !missing.error!.detail) throw new Error(JSON.stringify(missing));
"""


def run(command: list[str], place: Path) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


async def write_description(found: Daemon, place: Path) -> tuple[str, ...]:
    """The description in a file; the arguments of a client."""
    place.mkdir()
    (place / "openapi.json").write_bytes((await found.ask("GET", "/schema/openapi.json")).body)
    token = (found.home / "run" / "token").read_text()
    return f"http://127.0.0.1:{get_port(found)}", token, str(found.workspace), UNKNOWN


async def test_a_generated_python_client_drives_a_session(tmp_path: Path) -> None:
    try:
        generator, _ = packages.install_pypi("openapi-python-client", "openapi-python-client")
    except packages.UnavailableError as error:
        pytest.skip(str(error))
    async with daemon(tmp_path, ["Hello back."], "--tcp") as found:
        place = tmp_path / "python"
        arguments = await write_description(found, place)
        (place / "config.yaml").write_text(json.dumps({"post_hooks": []}))
        options = ["--path", "openapi.json", "--config", "config.yaml", "--meta", "none", "--output-path", "client"]
        assert "arning" not in run([str(generator), "generate", *options], place)
        (place / "drive.py").write_text(PYTHON)
        await asyncio.to_thread(run, [str(generator.with_name("python")), "drive.py", *arguments], place)


async def test_a_generated_typescript_client_drives_a_session(tmp_path: Path) -> None:
    try:
        generator, _ = packages.install_npm("openapi-typescript", "openapi-typescript")
        packages.run_installer(
            ["npm", "install", "--ignore-scripts", "openapi-fetch", "typescript@5"], generator.parents[2]
        )
    except packages.UnavailableError as error:
        pytest.skip(str(error))
    async with daemon(tmp_path, ["Hello back."], "--tcp") as found:
        place = tmp_path / "typescript"
        arguments = await write_description(found, place)
        (place / "node_modules").symlink_to(generator.parents[1])
        (place / "package.json").write_text('{"type": "module"}')
        run([str(generator), "openapi.json", "-o", "api.ts", "--default-non-nullable=false"], place)
        (place / "drive.ts").write_text(TYPESCRIPT)
        types = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom"]
        run([str(generator.with_name("tsc")), *types, "drive.ts"], place)
        await asyncio.to_thread(run, ["node", "drive.js", *arguments], place)


async def test_schemathesis_finds_nothing_with_all_its_checks(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("policy: {approval: read-only}\n")  # no command waits for an answer
    async with daemon(tmp_path, ["hi"] * 500, "--tcp") as found:
        url, token, *_ = await write_description(found, tmp_path / "fuzzed")
        options = ["--header", f"Authorization: Bearer {token}", "--max-examples", "2", "--request-timeout", "5"]
        command = [str(Path(sys.executable).with_name("st")), "run", f"{url}/schema/openapi.json", *options]
        await asyncio.to_thread(run, command, tmp_path)
