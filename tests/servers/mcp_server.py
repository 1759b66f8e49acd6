"""A real MCP server made with the official SDK; `hostile_mcp.py` has those that do harm.

`python tests/servers/mcp_server.py good [--http PORT]`
"""

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

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


class City(BaseModel):
    name: str


@server.tool()
async def inquire(context: Context) -> str:
    """Ask the person."""
    return (await context.elicit("Which city?", City)).action


@server.resource("notes://today")
def today() -> str:
    """What is noted today."""
    return "buy milk"


@server.prompt()
def review(language: str) -> str:
    """Ask for a review."""
    return f"Review the {language} code here."


if "--http" in sys.argv:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[-1]))
else:
    server.run("stdio")
