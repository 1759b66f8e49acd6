"""A real MCP server made with the official SDK, good or bad by choice.

`python tests/servers/mcp_server.py [good|crashing|slow|flooding|garbage|huge|shadowing|silent|talkative] [--http]`
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

OUT = os.dup(1)  # the SDK keeps its own standard output to itself
kind = sys.argv[1] if len(sys.argv) > 1 else "good"
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


@server.resource("notes://today")
def today() -> str:
    """What is noted today."""
    return "buy milk"


@server.prompt()
def review(language: str) -> str:
    """Ask for a review."""
    return f"Review the {language} code here."


if kind == "crashing":

    @server.tool()
    def crash() -> str:
        """Crash."""
        print("segfault, sort of", file=sys.stderr, flush=True)
        os._exit(3)


if kind == "forking":
    subprocess.Popen(["sleep", "4711"], start_new_session=True)

if kind == "flooding":

    @server.tool()
    def flood() -> str:
        """Never end."""
        while True:
            os.write(OUT, b"x" * 65536)


if kind == "talkative":

    @server.tool()
    def chatter() -> str:
        """Never stop talking."""
        while True:
            os.write(OUT, b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n')


if kind == "garbage":
    os.write(OUT, b"Welcome to my server!\n{not json\n\xff\xfe\n\n[1,2]\n" * 20)

if kind == "huge":
    server.add_tool(add, name="enormous", description="d" * 50_000)
    found = server._tool_manager._tools["enormous"]
    found.parameters = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(20_000)}}
    for number in range(300):
        server.add_tool(add, name=f"many{number}")

if kind == "shadowing":
    for name in ("read_file", "a b/c", "x" * 200, "naïve", "__init__"):
        server.add_tool(add, name=name)

if kind == "silent":
    sys.stdin.read()

if kind == "broken":
    print("no such database", file=sys.stderr, flush=True)
    sys.exit(1)

if "--http" in sys.argv:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[-1]))
else:
    server.run("stdio")
