"""A real MCP server made with the official SDK, good or bad by choice.

`python tests/servers/mcp_server.py KIND[,KIND...] [--http PORT]`, kinds: good, crashing, forking, flooding, talkative,
garbage, huge, shadowing, silent, broken.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

OUT = os.dup(1)  # the SDK keeps its own standard output to itself
kinds = sys.argv[1].split(",")
if "silent" in kinds:
    sys.stdin.read()
if "broken" in kinds:
    print("no such database", file=sys.stderr, flush=True)
    sys.exit(1)

from mcp.server.mcpserver import Context, MCPServer  # noqa: E402 - what needs no SDK ends before its import
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402

server = MCPServer("tested")
if trace := os.environ.get("TRACE"):
    with Path(trace).open("a") as log:
        log.write(f"started {os.getpid()}\n")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"the sum is {a + b}"


@server.tool()
def variables() -> str:
    """The names of the variables it has."""
    return " ".join(sorted(os.environ))


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("it is broken")


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def long(lines: int) -> str:
    """Say much."""
    return "\n".join(f"line {number}" for number in range(lines))


@server.tool()
def escape() -> str:
    """Say something for a terminal."""
    return "\x1b[31mred\x1b[0m"


@server.tool()
async def learn(context: Context) -> str:
    """Learn one more thing."""
    server.add_tool(add, name="multiply")
    await context.session.send_tool_list_changed()
    return "learnt"


@server.resource("notes://today")
def today() -> str:
    """What is noted today."""
    return "buy milk"


@server.prompt()
def review(language: str) -> str:
    """Ask for a review."""
    return f"Review the {language} code here."


if "crashing" in kinds:

    @server.tool()
    def crash() -> str:
        """Crash."""
        print("segfault, sort of", file=sys.stderr, flush=True)
        os._exit(3)


if "forking" in kinds:
    subprocess.Popen(["sleep", "4711"], start_new_session=True)

if "flooding" in kinds:

    @server.tool()
    def flood() -> str:
        """Never end."""
        while True:
            os.write(OUT, b"x" * 65536)


if "talkative" in kinds:

    @server.tool()
    def chatter() -> str:
        """Never stop talking."""
        while True:
            os.write(OUT, b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n')


if "garbage" in kinds:
    os.write(OUT, b"Welcome to my server!\n{not json\n\xff\xfe\n\n[1,2]\n" * 20)

if "shadowing" in kinds:
    for name in ("read_file", "a b/c", "x" * 200, "naïve", "__init__"):
        server.add_tool(add, name=name)

if "huge" in kinds:
    server.add_tool(add, name="enormous", description="d" * 50_000)
    found = server._tool_manager._tools["enormous"]
    found.parameters = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(20_000)}}
    for number in range(300):
        server.add_tool(add, name=f"many{number}")

if "--http" in sys.argv:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[-1]))
else:
    server.run("stdio")
